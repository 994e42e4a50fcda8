"""Words of answers are NLTK's: expected values by NLTK 3.10.4 with Punkt's English model."""

import pytest

from seeact_offline.trajectories.word_tokens import word_tokenize

CASES = [
    ("the price is $5.", "the price is $ 5 ."),
    ("it costs 10. 20 would be more", "it costs 10 . 20 would be more"),
    ("it costs 10. that is all", "it costs 10. that is all"),
    ("no. 5", "no . 5"),
    ("yes. it is", "yes . it is"),
    ("at 5 p.m. today", "at 5 p.m. today"),
    ("at 5 a.m. today", "at 5 a.m. today"),
    ("u.s. dollars", "u.s. dollars"),
    ("inc. (est. 1990)", "inc. ( est . 1990 )"),
    ('he said "no." then', "he said `` no . '' then"),
    ("(done.) next", "( done . ) next"),
    ("what? yes! ok", "what ? yes ! ok"),
    ("don't, can't, it's", "do n't , ca n't , it 's"),
    ("'quoted' words", "' quoted ' words"),
    ("rock 'n' roll", "rock 'n ' roll"),
    ("i'm. we'll", "i 'm . we 'll"),
    ("3.50, 4", "3.50 , 4"),
    ("12:30", "12:30"),
    ("1,000", "1,000"),
    ("a, b; c: d", "a , b ; c : d"),
    ("n/a", "n/a"),
    ("100%", "100 %"),
    ("#1", "# 1"),
    ("x@y.com", "x @ y.com"),
    ("http://127.0.0.1:9980/index.php?page=item&id=3", "http : //127.0.0.1:9980/index.php ? page=item & id=3"),
    ("wi-fi. 5", "wi-fi . 5"),
    ("a -- b", "a -- b"),
    ("two--three", "two -- three"),
    ("an en – dash", "an en – dash"),
    ("“curly” ‘s’", "“ curly ” ‘ s ’"),
    ("cannot gimme wanna go", "can not gim me wan na go"),
    ("'tis", "' tis"),
    ("red/blue", "red/blue"),
    ("size: m.", "size : m ."),
    ("size m. blue", "size m. blue"),
    ("b. 7", "b . 7"),
    ("...", "..."),
    ("wait... what", "wait ... what"),
    ("end..", "end .."),
    ("[x] {y} <z>", "[ x ] { y } < z >"),
    ("*bold*", "* bold *"),
    ("$279.49. it", "$ 279.49 . it"),
    ("a\nb\tc", "a b c"),
    ("", ""),
    ("   ", ""),
    ('"', "``"),
    ("''", "''"),
    ("``", "``"),
    ("5.", "5 ."),
    ("é. ü", "é. ü"),
]
"""Text, and its words with a space between them."""


@pytest.mark.parametrize(("text", "words"), CASES)
def test_words(text: str, words: str) -> None:
    assert word_tokenize(text) == words.split()


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "'" * 20_000, ". " * 50_000, "5." * 50_000, '"' * 20_000, " " * 50_000]
)
def test_long_texts_take_linear_time(text: str) -> None:
    assert isinstance(word_tokenize(text), list)
