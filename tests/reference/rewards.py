"""The rules of rewards written out slowly: one pass over characters, one comparison at a time. Words are cut by white space here; tests
that compare with it use texts in which nothing else cuts a word."""

from urllib.parse import unquote_plus


def cleaned(text: str, strip: bool) -> str:
    if strip:
        while text and text[0].isspace():
            text = text[1:]
        while text and text[-1].isspace():
            text = text[:-1]
    for quote in "'\"":
        if text[:1] == quote and text[-1:] == quote:
            text = text[1:-1] if len(text) > 1 else ""
            break
    return "".join(character.lower() for character in text)


def holds(text: str, part: str) -> bool:
    return any(text[i : i + len(part)] == part for i in range(len(text) - len(part) + 1))


def exact_match(answer: str, reference: str, strip: bool = False) -> float:
    return 1.0 if cleaned(answer, strip) == cleaned(reference, strip) else 0.0


def in_answer(answer: str, entry: str) -> bool:
    answer, entry = cleaned(answer, False), cleaned(entry, False)
    if len(entry.split()) == 1:
        return any(word == entry for word in answer.split())
    return holds(answer, entry)


def must_include(answer: str, entries: list[str]) -> float:
    for entry in entries:
        found = False
        for alternative in entry.split(" |OR| "):
            found = found or in_answer(answer, alternative)
        if not found:
            return 0.0
    return 1.0


def must_exclude(answer: str, entries: list[str]) -> float:
    for entry in entries:
        if in_answer(answer, entry):
            return 0.0
    return 1.0


def must_include_webarena(answer: str, entries: list[str]) -> float:
    said = cleaned(answer, True)
    for entry in entries:
        wanted = cleaned(entry, True)
        if len(entries) == 1 and len(wanted) == 1 and wanted.split():
            if wanted not in said.split():
                return 0.0
        elif not holds(said, wanted):
            return 0.0
    return 1.0


def one_of(answer: str, entries: list[str]) -> float:
    said = cleaned(answer, False)
    for entry in entries:
        if holds(said, cleaned(entry, False)):
            return 1.0
    return 0.0


def required_values(answer: str, entries: list[tuple[str, float]], strict: bool) -> float:
    """Entries: sign and number."""
    try:
        number = int(cleaned(answer, False).strip().replace(",", ""))
    except ValueError:
        return 0.0
    for sign, limit in entries:
        near = abs(number - limit) <= 1e-8
        if "=" in sign or not strict:
            good = near or (sign[0] == "<" and number < limit) or (sign[0] == ">" and number > limit)
        else:
            good = not near and (number < limit if sign == "<" else number > limit)
        if not good:
            return 0.0
    return 1.0


def url_match(address: str, references: list[str], note: str) -> float:
    def tidy(one: str) -> str:
        one = "127.0.0.1".join(one.split("localhost"))
        return one[:-1] if one[-1:] == "/" else one

    for reference in references:
        if tidy(address) == tidy(reference) or (note == "GOLD in PRED" and holds(tidy(address), tidy(reference))):
            return 1.0
    return 0.0


def url_match_webarena(address: str, references: list[str]) -> float:
    def split(one: str) -> tuple[str, list[tuple[str, str]]]:
        while one[-1:] == "/":
            one = one[:-1]
        place, _, query = one.partition("#")[0].partition("?")
        place = place.partition("://")[2]
        pairs = [pair.split("=", 1) for pair in query.split("&") if "=" in pair]
        return place, [(unquote_plus(key), unquote_plus(value)) for key, value in pairs if value]

    place, values = split(address)
    wanted = [split(reference) for reference in references]
    if not any(holds(place, one) for one, _ in wanted):
        return 0.0
    for key in {key for _, pairs in wanted for key, _ in pairs}:
        if not any((key, value) in values for _, pairs in wanted for name, value in pairs if name == key):
            return 0.0
    return 1.0


def ssim(first: list[list[int]], second: list[list[int]]) -> float:
    """Of two grey pictures of equal size, window by window."""
    c1, c2, side = (0.01 * 255) ** 2, (0.03 * 255) ** 2, 7
    found = []
    for top in range(len(first) - side + 1):
        for left in range(len(first[0]) - side + 1):
            x = [first[top + i][left + j] for i in range(side) for j in range(side)]
            y = [second[top + i][left + j] for i in range(side) for j in range(side)]
            mx, my, n = sum(x) / len(x), sum(y) / len(y), len(x) - 1
            vx, vy = sum((a - mx) ** 2 for a in x) / n, sum((b - my) ** 2 for b in y) / n
            cov = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / n
            found.append((2 * mx * my + c1) * (2 * cov + c2) / ((mx * mx + my * my + c1) * (vx + vy + c2)))
    return sum(found) / len(found)
