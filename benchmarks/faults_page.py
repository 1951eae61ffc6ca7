TARGETS = {"category": 0.95, "skill": 0.95, "line": 0.80}
def count(rows, name):
    asked=[r["right"][name] for r in rows if r["right"][name] is not None]
    return sum(asked), len(asked)
def page(results): return ""
