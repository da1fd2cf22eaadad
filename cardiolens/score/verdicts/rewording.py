"""What a question lets a reply say in other words: "both atria", "no effusion" (protocol 17.16)."""

import functools
import re

from cardiolens.score.verdicts.option_text import Option

_NONE = re.compile(r"(none|absent|neither)\b", re.IGNORECASE)
_ASKED = re.compile(
    r"\b(?:is|are) there (?:an? |any )?(?P<noun>[^?]+?)(?: (?:of|in) [^?]*)?\?", re.IGNORECASE
)
_COMPOUND = re.compile(r"\bwhich [\w-]+ (?P<noun>\w{6,}) is\b", re.IGNORECASE)
_BRACKET = re.compile(r"\s*\(([^()]*)\)")
_QUALIFIED = r"(?:(?:evidence|signs?|trace) of |(?:any|significant|definite|visible|relevant|myocardial) )*"
_ANYWHERE = r"(?: (?:in any \w+|at any \w+|anywhere))?"
_SEEN = r"(?: (?:is |was |are |were |can be )?(?:seen|present|visible|identified|detected|evident|found))?"
_OF = r"(?: (?:of|in) the (?:\w+ )?(?:myocardium|heart|ventricle|wall))?"
_ENDS = r"(?=\s*(?:[.;,:\n()]|beyond\b|$))"


def reworded(plain: str, options: tuple[Option, ...], question: str) -> str:
    """A visible reply with such words replaced by the option texts that they stand for, in small letters."""
    for pattern, text in _rewordings(options, question):
        plain = pattern.sub(text, plain)
    return plain


@functools.lru_cache(maxsize=1024)
def _rewordings(options: tuple[Option, ...], question: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    texts = [text for _, text in options]
    none = next((match[1].lower() for match in map(_NONE.match, texts) if match), None)
    asked = _ASKED.search(question)
    patterns: list[tuple[re.Pattern[str], str]] = []
    if none and asked:
        patterns.append((_absence(asked["noun"]), none))
        patterns.append((re.compile(r"\A\W*no\W*\Z", re.IGNORECASE), none))
        if len(texts) == 2:
            other = next(text for text in texts if not _NONE.match(text)).lower()
            patterns.append((re.compile(r"\A\W*yes\W*\Z", re.IGNORECASE), other))
            patterns.append((_presence(asked["noun"]), f"{asked['noun']} is {other}."))
    if compound := _COMPOUND.search(question):
        patterns += [_compound(text, compound["noun"]) for text in texts if " " not in _BRACKET.sub("", text)]
    if pair := _pair(texts):
        last = pair[0].split()[-1]
        plural = f"{last[:-2]}a" if last.endswith("um") else f"{last}s"
        said = r"(?=(?:are|were|appear|enlarged|dilated)\b)"
        both = re.compile(
            rf"(?<!not )\bboth (?:of )?(?:the )?(?:{re.escape(plural)}\b|{said})", re.IGNORECASE
        )
        patterns.append((both, f"{pair[0].lower()} and {pair[1].lower()} "))
        patterns.append((re.compile(r"\A\W*both\W*\Z", re.IGNORECASE), f"{pair[0]} and {pair[1].lower()}"))
        patterns += [(re.compile(rf"\b{_initials(text)}\b"), text.lower()) for text in pair]
    return tuple(patterns)


def _compound(text: str, noun: str) -> tuple[re.Pattern[str], str]:
    """Pattern of an option with the noun that its question has for it: "dilated cardiomyopathy"."""
    bare, acronym = _BRACKET.sub("", text), _BRACKET.search(text)
    pattern = re.compile(
        rf"(?<![\w-]){re.escape(bare)} {re.escape(noun)}\b(?: \({acronym[1]}\))?"
        if acronym
        else rf"(?<![\w-]){re.escape(bare)} {re.escape(noun)}\b",
        re.IGNORECASE,
    )
    return pattern, acronym[1] if acronym else bare


def _presence(noun: str) -> re.Pattern[str]:
    """Pattern of the presence of what a question asks for: "Yes, there is LGE", "LGE is seen"."""
    named = _named(noun)
    return re.compile(
        rf"(?:\A\W*(?:yes, )?there(?: is|'s) (?:clear |definite )?(?:{named})(?:{_ENDS}| (?:in|of|at) the\b)"
        rf"|\A\W*(?:{named}) is (?:clearly )?(?:present|seen|visible|evident|detected|identified)\b)",
        re.IGNORECASE,
    )


def _named(noun: str) -> str:
    words_of_noun = noun.split()
    acronym = "".join(word[0] for word in words_of_noun)
    return "|".join(map(re.escape, dict.fromkeys((noun, words_of_noun[-1], acronym))))


def _absence(noun: str) -> re.Pattern[str]:
    """Pattern of the absence of what a question asks for: "no effusion", "no LGE"."""
    return re.compile(rf"\bno {_QUALIFIED}(?:{_named(noun)}){_OF}{_SEEN}{_ANYWHERE}{_ENDS}", re.IGNORECASE)


def _initials(text: str) -> str:
    """The capitals that reports write for an option: "LA" for "Left atrium"."""
    return "".join(word[0] for word in text.split()).upper()


def _pair(texts: list[str]) -> tuple[str, str] | None:
    """The two options that share their last word, where no others do."""
    by_last: dict[str, list[str]] = {}
    for text in texts:
        by_last.setdefault(text.split()[-1], []).append(text)
    shared = [group for group in by_last.values() if len(group) > 1]
    return (shared[0][0], shared[0][1]) if len(shared) == 1 and len(shared[0]) == 2 else None
