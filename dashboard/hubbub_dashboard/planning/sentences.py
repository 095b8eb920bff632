"""The figures of a plan in words; what `hubbub plan` says too is said as it says it. Pure."""

from typing import Final

from hubbub_aggregator.commands.plan_text import in_all, percentage, price, sight
from hubbub_aggregator.commands.plan_text import pick as reason
from hubbub_aggregator.commands.plan_text import reports as so_many
from hubbub_aggregator.planning.planner import Plan
from hubbub_dashboard import text
from hubbub_dashboard.planning.made_up import Crowd
from hubbub_dashboard.planning.question import Question

PURPOSE: Final = (
    "What a metric will show, before anybody is asked. Nothing is collected here, and no "
    "aggregator is needed."
)

EPSILON: Final = (
    "How much one report may give away: 1 takes whoever thought an answer 50:50 to 73 % sure at "
    "most, 2 to 88 %. Smaller is more private and needs more reports. Write 1, 0.5 or ln 3."
)

ASKED: Final = {
    "every round": "Each device answers every round, with new noise, and pays for each report.",
    "a sample of rounds": (
        "Each device draws beforehand which rounds it answers, and pays for so many."
    ),
    "from a memo": (
        "Each device draws noisy answers once, keeps them, and reports from them in every round. "
        "It pays for the memo, and for no report."
    ),
}

TAKE_ALONG: Final = (
    "Put this into a file, replace the question and the names that begin with “my.”, and sign it "
    "with `hubbub sign`. A metric, once signed, never changes."
)


def answer(plan: Plan) -> str:
    """What would be seen, in one sentence."""
    first = plan.prospects[0]
    if first.detectable is None:
        return sight(plan)
    rounds = " in a round" if plan.series.rounds > 1 else ""
    return (
        f"With {so_many(plan.reports)}{rounds} at ε = {plan.epsilon.text}, a share of "
        f"{percentage(first.detectable)} or more stands out of the noise in 4 of 5 collections; "
        f"{text.level(plan.level)} margins are ±{_points(first.half_width)}."
    )


def _points(share: float) -> str:
    return text.in_points(percentage(share).removesuffix(" %"))


def who(question: Question, plan: Plan) -> str:
    """Who the made-up crowd is."""
    first, second = map(text.quoted, question.labels[:2])
    shares = f"half of them {first}"
    if plan.values > 2:
        shares += f", a quarter {second}, and so on, each half of the one before"
    else:
        shares += f", half {second}"
    return f"Made up: {text.counted(plan.reports, 'device')}, {shares}. ▲ is the true share."


def how(crowd: Crowd, seed: int) -> str:
    """How the made-up crowd's figures came about."""
    if crowd.together:
        way = (
            "Every device's answer was randomised as the client does, and counted and estimated "
            "as the aggregator does."
        )
    else:
        way = (
            "So many reports are not made one by one here: how many support a value is drawn from "
            "its exact law, for each value by itself, and estimated as the aggregator does."
        )
    return f"{way} This is crowd {seed}; another one has other noise."


def inside(crowd: Crowd) -> str:
    """How many intervals hold the truth."""
    return f"{sum(crowd.inside)} of {len(crowd.inside)} true shares lie inside their interval."


def needed(share: float, reports: int | None) -> str:
    """How many reports it takes to see a share."""
    shown = percentage(share)
    if reports is None:
        return f"To see a share of {shown}, ten thousand million reports are not enough."
    return f"To see a share of {shown} in 4 of 5 collections, you need about {so_many(reports)}."


def pick(plan: Plan) -> tuple[str, ...]:
    """Which mechanism is picked, and what the columns are."""
    return (
        reason(plan),
        "Standard error and ± are those of a value that nobody has. Influence is how far one "
        "hostile report moves a share; bytes are what a report says, before sealing.",
    )


def consequences(plan: Plan) -> tuple[str, ...]:
    """What all rounds cost a device, and what a trusted curator would pay."""
    return (in_all(plan), price(plan))


def steps(plan: Plan) -> str:
    """What the table of reports is about."""
    rounds = " of a round" if plan.series.rounds > 1 else ""
    return (
        f"With {plan.prospects[0].mechanism.name} and the same ε, by the number of reports"
        f"{rounds}. A share that is detectable stands out of the noise in 4 of 5 collections. Four "
        f"times the reports halve every margin."
    )
