"""The outcomes as a text table, as Markdown for docs/performance.md, and as JSON."""

import json
import statistics


def quantity(value, unit):
    if unit == "B":
        return f"{value / 1e6:.2f} MB" if value >= 1e5 else f"{value / 1e3:.2f} kB"
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1:
            return f"{value * factor:.2f} {name}"
    return f"{value * 1e6:.2f} us"


def spread(values, unit):
    text = quantity(statistics.median(values), unit)
    return text if len(values) == 1 else f"{text} [{quantity(min(values), unit)}, {quantity(max(values), unit)}]"


def number(ratio):
    return f"{ratio:.3f}" if ratio < 10 else f"{ratio:.1f}"


def verdict(outcome):
    return {True: "reached", False: "missed", None: ""}[outcome.is_reached]


def text_line(outcome):
    case = outcome.case
    if outcome.not_run:
        return f"{case.name:<20} not run: {outcome.not_run}"
    if outcome.failed:
        return f"{case.name:<20} FAILED: {outcome.failed}"
    measured = outcome.measured
    line = (f"{case.name:<20} ratio {number(outcome.ratio):>7}  goal {case.goal.text():<8} {verdict(outcome):<8}"
            f" kc {spread(measured.ours, measured.unit)}   rival {spread(measured.rival, measured.unit)}")
    return line + (f"   {len(measured.ours)} runs" if len(measured.ours) > 1 else "")


def text(outcomes):
    return "\n".join(text_line(outcome) for outcome in outcomes)


def markdown_ratio(outcome):
    ratios = outcome.measured.ratios(outcome.case.goal)
    if len(ratios) == 1:
        return number(ratios[0])
    return f"{number(outcome.ratio)} [{number(min(ratios))}, {number(max(ratios))}]"


def markdown(outcomes, about):
    """The table of docs/performance.md: ratios only, since times are one machine's alone."""
    lines = ["| case | kc | against | goal | reached | runs |", "|---|---|---|---|---|---|"]
    for outcome in outcomes:
        case = outcome.case
        runs = ""
        if outcome.not_run:
            reached = f"not run: {outcome.not_run}"
        elif outcome.failed:
            reached = "failed"
        else:
            reached = markdown_ratio(outcome)
            reached += ", **missed**" if outcome.is_reached is False else ""
            runs = str(len(outcome.measured.ours))
        goal = case.goal.text().replace("<=", "≤").replace(">=", "≥")
        lines.append(f"| `{case.name}` | {case.ours} | {case.rival} | {goal} | {reached} | {runs} |")
    lines += ["", "Measured with " + ", ".join(f"{name} {version}" for name, version in about["versions"].items()) +
              f" on {about['cpus']} CPUs."]
    return "\n".join(lines)


def as_json(outcomes, about):
    results = []
    for outcome in outcomes:
        case = outcome.case
        row = {"case": case.name, "ours": case.ours, "rival": case.rival, "goal": case.goal.text()}
        if outcome.not_run:
            row["not_run"] = outcome.not_run
        elif outcome.failed:
            row["failed"] = outcome.failed
        else:
            ratios = outcome.measured.ratios(case.goal)
            row |= {"ratio": outcome.ratio, "ratio_min": min(ratios), "ratio_max": max(ratios),
                    "reached": outcome.is_reached, "unit": outcome.measured.unit}
            for key, values in (("kc_figures", outcome.measured.ours), ("rival_figures", outcome.measured.rival)):
                row[key] = {"median": statistics.median(values), "min": min(values), "max": max(values),
                            "runs": len(values)}
        results.append(row)
    return json.dumps({**about, "results": results}, indent=2) + "\n"


def listing(cases, missing):
    """`missing`: a function of a case, gives why it cannot run or ""."""
    lines = []
    for case in cases:
        lines.append(f"{case.name:<20} {case.ours}; against {case.rival}")
        needs = ", ".join(need.name for need in case.needs) or "nothing else"
        lines.append(f"{'':<20} goal {case.goal.text()}; needs {needs}")
        if why := missing(case):
            lines.append(f"{'':<20} would not run: {why}")
    return "\n".join(lines)
