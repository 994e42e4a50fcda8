"""Words of answers are those of NLTK 3.8.1: expected values by its `word_tokenize`, with Punkt's English model."""

import hashlib
import random

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
    ("'quoted' words", "'quoted ' words"),
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
    ("'tis", "'t is"),
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
    ("the answer is 'kayak'.", "the answer is 'kayak ' ."),
    ("'kayak'", "'kayak '"),
    ("kayak's", "kayak 's"),
    ("'kayak' or 'canoe'", "'kayak ' or 'canoe '"),
    ("it's 'a'", "it 's ' a '"),
    ("en–dash and em—dash", "en–dash and em—dash"),
    ("a…b", "a…b"),
    ("1–2", "1–2"),
    ("8.–9.", "8.–9 ."),
    ("“0”", "“ 0 ”"),
    ("0”", "0 ”"),
    ("5.\nadministrators", "5 . administrators"),
    ("5. administrators left", "5 . administrators left"),
    ("no. 3, administrators.", "no . 3 , administrators ."),
    ("st. louis", "st. louis"),
    ("x-inc. is", "x-inc. is"),
    ("5! 6? 7.", "5 ! 6 ? 7 ."),
    ("?? ok", "? ? ok"),
    (" ?? ok", "? ? ok"),
    ("so ?? ok", "so ? ? ok"),
    ("a.\xa0b. 5.\xa0c", "a. b . 5. c"),
    (". . . x", ". . . x"),
    ("x\xa0.\xa0.\xa0. y", "x . . . y"),
    ("b. 𝐀 c", "b. 𝐀 c"),
    ("5. 𝐀 c", "5 . 𝐀 c"),
    ("ok. 'then' ok", "ok. 'then ' ok"),
    ("ok.' then", "ok. ' then"),
    ("(ok.) (then.)", "( ok. ) ( then . )"),
    ("ok.) -- then", "ok. ) -- then"),
    ("a.,b", "a. , b"),
    ("a,, b", "a , , b"),
    ("a:,", "a : ,"),
    ("end,", "end ,"),
    ("5:", "5 :"),
    ("x.. y.", "x .. y ."),
    ("''quoted''", "'' quoted ''"),
    ("see '' there", "see `` there"),
    ("```a``", "`` ` a ``"),
    ("more'n d'ye gotta lemme gonna wanna, wanna go", "more 'n d 'ye got ta lem me gon na wan na , wan na go"),
    ("cannot'tis", "can not 't is"),
    ("'tis 'twas", "'t is 't was"),
    ("x's' y", "x 's ' y"),
    ("o'clock 'n' d'or", "o'clock 'n ' d'or"),
    ("don't. won't", "do n't . wo n't"),
    ("a--b---c", "a -- b -- -c"),
    ("&amp; 5% @me #1", "& amp ; 5 % @ me # 1"),
    ("$5.00. 6", "$ 5.00 . 6"),
    ("{a}[b]<c>(d)", "{ a } [ b ] < c > ( d )"),
    ('a.)"', "a . ) ''"),
    ("he said: 'no.'", "he said : 'no . '"),
    ("kayak.)", "kayak . )"),
    ("u.s. 5", "u.s. 5"),
    ("3.5.", "3.5 ."),
    ("-5. x", "-5. x"),
    (".5. x", ".5. x"),
    ("1,2. x", "1,2. x"),
    ("٣. x", "٣. x"),
    ("ſ 'ſ x'ſ", "ſ 'ſ x'ſ"),
    ("a\u2003b\u2028c\x1cd", "a b c d"),
]
"""Text, and its words with a space between them."""


@pytest.mark.parametrize(("text", "words"), CASES)
def test_words(text: str, words: str) -> None:
    assert word_tokenize(text) == words.split()


PIECES = [*(
    "the answer is yes . ? ! , ; : ' '' \" `` ` ``` ( ) [ ] { } < > * -- --- - – — … .. ... a b. 5. 10. 3.50 1,000 -5. u.s. p.m. inc. "
    "st. x-st. administrators can't cannot don't it's i'm they've o'clock 'n' 'tis 'twas d'ye gimme gotta more'n wanna, wanna « » “ ” ‘ "
    "’ „ 's 'd 'x 'ſ é. 𝐀 ٣. !! ?? ). .) .\" ?\" '. & # @ % $279.49. 's. n't ,, 'll. a.m. 5.) 6.]"
).split(" "), "\n", "\t", "\xa0", "\x1c", "", " ", "  "]  # fmt: skip
DIGESTS = [
    "1f410d2b5381fb5b",
    "2fee9eb31681a6b5",
    "4071b55e67d89a37",
    "2062f6941ec3b27e",
    "adf0ab9630397147",
    "af747b7f531f6da2",
    "9876fc3e3b8e6ee6",
    "36cf08fea7dd9d5d",
]
"""Of the words of 2,500 texts each."""


def _texts(seed: int) -> list[str]:
    # of all that `random` does, only `random()` is the same in every version of Python
    draw = random.Random(seed).random
    return [
        "".join(
            PIECES[int(draw() * len(PIECES))] + ("" if draw() < 0.5 else " ") for _ in range(int(draw() * 9))
        )
        for _ in range(2500)
    ]  # fmt: skip


@pytest.mark.parametrize(("seed", "digest"), list(enumerate(DIGESTS)))
def test_words_of_many_texts(seed: int, digest: str) -> None:
    words = "\n".join(" ".join(word_tokenize(text)) for text in _texts(seed))
    assert hashlib.sha256(words.encode()).hexdigest()[:16] == digest


LONG = [
    "a" * 200_000, "'" * 20_000, ". " * 20_000, "5." * 50_000, '"' * 20_000, " " * 50_000, "a. " * 300_000,
    "a." + " " * 50_000 + "b", "5. " * 20_000, "?! " * 10_000, '?"' * 50_000, ".\xa0" * 50_000,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG)
def test_long_texts_take_linear_time(text: str) -> None:
    assert isinstance(word_tokenize(text), list)
