"""Sentences that code makes: what was done and then was not, and what was undone of something else."""

from bench.yardstick.cases import Case, labelled
from safe_core import Output

_NOUNS = ("surgery", "transfusion", "endoscopy", "physiotherapy", "dialysis")
STARTED = "was started"
"""What was started and then stopped is no contradiction, so these sentences count apart."""
_DONE = (
    "was done",
    "was performed",
    "took place",
    "was completed",
    "went ahead",
    "was carried out",
    "happened",
    "was given",
    "was undertaken",
    "was finished",
    "occurred",
    STARTED,
)
_UNDONE = (
    "was cancelled",
    "was canceled",
    "was postponed",
    "was put off",
    "was called off",
    "did not take place",
    "didn't happen",
    "was not done",
    "was not performed",
    "was never done",
    "never happened",
    "failed to take place",
    "was withheld",
    "was refused",
    "was declined",
    "was deferred",
    "had to be abandoned",
)
# In each, {this} was done and {that} was not; {done} and {undone} stand where the verbs do.
_FRAMES = (
    "The {that} was cancelled because the {this} had been done.",
    "Because the {that} had been postponed, the {this} has been done.",
    "The {this} had been done although the {that} had been cancelled.",
    "The cancelled {that} was rebooked and {this} has been done.",
    "While the {that} did not take place, the {this} had been done.",
    "{this} done; {that} cancelled.",
    "The {that} was refused. The {this} had been done.",
    "The {this}, unlike the {that}, which was cancelled, had been done.",
    "The {that} was not done, but {this} has been done.",
    "Instead of the {that}, which was called off, {this} had been done.",
    "The {this} had been done, so the {that} was no longer needed and was cancelled.",
    "Once the {this} had been done, the {that} was withheld.",
    "The patient declined the {that} after the {this} had been done.",
    "{that} postponed, {this} done.",
    "The {this} had been done despite the abandoned {that}.",
    "When the {that} failed to take place, the family asked whether the {this} had been done, and it had.",
    "No {that} was needed, as the {this} had been done.",
    "The {that} never happened; on the same day the {this} had been done.",
    "The {this} had been done by a team whose {that} had been put off.",
    "With the {that} deferred until May, the {this} has been done.",
)
_DONE_THINGS = (
    *_NOUNS,
    *("biopsy", "bronchoscopy", "thoracentesis", "catheterisation", "radiotherapy", "vaccination"),
    *("amputation", "debridement", "cardioversion", "intubation", "plasmapheresis", "laparoscopy"),
)
_UNDONE_THINGS = (
    *("scan", "clinic visit", "transfer", "home visit", "blood test", "swallow test", "X-ray", "family meeting"),
    *("ultrasound", "follow-up call", "second opinion", "discharge", "echo", "ward round", "hearing test", "MRI"),
    "interview",
)


def contradictions() -> list[Case]:
    """Each of five things was done in the narrative and the term, and was not in the output."""
    return [
        labelled(
            Case(
                f"{noun} {done}/{undone}",
                f"{noun} {done}",
                Output((f"{noun} {undone}",), "The case was discussed."),
                f"{noun.capitalize()} {done} on Monday.",
            ),
            {"contradicted"},
            {"supported"},
        )
        for noun in _NOUNS
        for done in _DONE
        for undone in _UNDONE
    ]


def mirrors() -> list[Case]:
    """What was undone belongs to something else: the term is said, and never contradicted."""
    cases = []
    for number, frame in enumerate(_FRAMES):
        for index, this in enumerate(_DONE_THINGS):
            that = _UNDONE_THINGS[(index + number) % len(_UNDONE_THINGS)]
            text = frame.format(this=this, that=that)
            text = text[0].upper() + text[1:]
            case = Case(f"{number}/{this}", f"{this} was done", Output((text,), ""), f"The {this} was done on Monday.")
            cases.append(labelled(case, {"said"}, {"supported"}))
    return cases
