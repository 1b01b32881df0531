"""Does the real store say what the model says?  Each function raises Mismatch
with both sides when it does not.

Where the rulebook leaves a choice, both are accepted; each such place has a
comment that begins with `Open:`.
"""

from backends import number, views_of
from model import File, Refused, is_on_path, remover, view

# Codes whose spelling is a promise.
WORDS = {"append-collision", "strict-append-collision", "empty-replace",
         "open-transaction", "no-such-path", "branch-moved", "already-staged"}
PATH_CODES = {"input-modified", "input-removed-user",
              "input-removed-retention"}


class Mismatch(Exception):
    pass


def require(holds, text, *values):
    if not holds:
        raise Mismatch(text % values if values else text)


def same(what, want, got):
    require(want == got, "%s: want %s, got %s", what, want, got)


def real(txn):
    """The number that the store gave a transaction of the model."""
    return txn.real if txn is not None else None


def failure(what, refused, reply, exit_code=None):
    require("error" in reply, "%s: want %s, got %s", what, refused.word, reply)
    word = reply["error"].get("code")
    if word in refused.also:
        return
    if refused.word in WORDS:
        same(what + ": error", refused.word, word)
    paths = reply["error"].get("paths")
    if refused.paths and paths:
        same(what + ": paths", refused.paths, sorted(
            p["path"] if isinstance(p, dict) else p for p in paths))
    if "exit" in reply and word != "path-conflict":
        same(what + ": exit (%s)" % refused.word,
             exit_code or refused.exit_code, reply["exit"])


# ---------------------------------------------------------- transactions

def txn_line(txn, line):
    same("type of t%d" % txn.real, txn.type, line["type"])
    if line.get("files") is not None:
        same("files of t%d" % txn.real, len(txn.files), line["files"])
    if line.get("removed") is not None:
        same("removed of t%d" % txn.real, len(txn.removed), line["removed"])
    if line.get("origin") is not None:
        same("origin of t%d" % txn.real, txn.origin, line["origin"])


def dataset(backend, model, name, branch):
    """The view and the log of a branch."""
    head = model.head(name, branch)
    what = "%s:%s" % (name, branch)
    got = backend.ls(name, branch)
    if branch not in model.datasets[name].branches or (
            head is None and "error" in got):
        require("error" in got, "%s exists: %s", what, got)
        return
    want = {path: (txn.real, "%04o" % txn.files[path].mode)
            for path, txn in view(head).items()}
    same("ls " + what, want, got)
    lines = backend.log(name, branch)
    if head is None:
        return
    same("log " + what, [t.real for t in reversed(head.line())],
         [number(line["transaction"]) for line in lines])
    for txn, line in zip(reversed(head.line()), lines):
        txn_line(txn, line)


def past(backend, name, txn):
    got = backend.ls(name, "@t%d" % txn.real)
    want = {path: (writer.real, "%04o" % writer.files[path].mode)
            for path, writer in view(txn).items()}
    same("ls %s@t%d" % (name, txn.real), want, got)


def diff(backend, name, since, to):
    what = "diff %s t%d..t%d" % (name, since.real, to.real)
    got = backend.diff(name, since.real, to.real)
    old, new = view(since), view(to)
    want = {p: ("modified" if p in old else "added", new[p].real)
            for p in new if old.get(p) is not new[p]}
    snapshot = to.start() is not since.start()
    for path in set(old) - set(new):
        txn = None if snapshot else remover(to, path).real
        want[path] = ("removed", txn)
    if snapshot and "error" not in got:
        # Open: which transaction removed what a snapshot left out.
        got = {p: (s, None if s == "removed" else t)
               for p, (s, t) in got.items()}
    same(what, want, got)


# ----------------------------------------------------------------- plans

def plan(what, want, got):
    """Returns the real decision, which may differ where it is open."""
    require("decision" in got, "%s: want %s, got %s", what, want.decision,
            got)
    decision = got["decision"]
    allowed = {want.decision}
    if want.fresh_doubt:
        # Open: is a skipped build's command, or the branch it ran on, part of
        # what must be the same?
        allowed |= {"fresh", "incremental"}
    require(decision in allowed, "%s: want %s because of %s, got %s because "
            "of %s", what, want.decision, want.codes(), decision,
            got.get("reasons"))
    if "exit" in got and what.startswith("plan"):
        same(what + ": exit", 5 if decision in ("refused", "error") else 0,
             got["exit"])
    reasons(what, want, got["reasons"])
    if decision in ("incremental", "snapshot"):
        same(what + ": is_incremental", decision == "incremental",
             got["is_incremental"])
    if decision in ("incremental", "snapshot", "fresh"):
        for alias, at in want.inputs.items():
            plan_input("%s, input %s" % (what, alias), at,
                       got["inputs"][alias])
        for alias, out in want.outputs.items():
            plan_output("%s, output %s" % (what, alias), out,
                        got["outputs"][alias])
    return decision


def reasons(what, want, got):
    # Open: once the last transaction read is off the path, or a limited input
    # cannot be read, the net change of that input has no meaning.
    blurred = {a for a, at in want.inputs.items() if at.is_blurred}

    def counts(code, alias):
        return not (code in PATH_CODES and alias in blurred)
    wanted = {(r.code, r.alias): r for r in want.reasons
              if counts(r.code, r.alias)}
    found = {(r["code"], r["alias"]): r for r in got
             if counts(r["code"], r["alias"])}
    same(what + ": reasons", sorted(wanted, key=str), sorted(found, key=str))
    for key, reason in wanted.items():
        one_reason("%s: reason %s of %s" % (what, *key), reason, found[key])


def one_reason(what, want, got):
    if want.code in PATH_CODES:
        same(what + ": path", want.path, got["path"])
        same(what + ": count", want.count, got["count"])
    if want.txns:
        # Open: which of several transactions a reason names.
        require(number(got["transaction"]) in [t.real for t in want.txns if t],
                "%s: want one of %s, got %s", what,
                [t.real for t in want.txns if t], got["transaction"])
    elif want.txn is not None:
        same(what + ": transaction", want.txn.real, number(got["transaction"]))


def plan_input(what, want, got):
    same(what + ": dataset", want.dataset.name, got["dataset"])
    same(what + ": kind", want.kind, got["kind"])
    if want.head is not None:
        same(what + ": branch", want.branch, got["branch"])
    pairs = [("view_start", want.start), ("view_end", want.head),
             ("read_end", want.read_end)]
    if not want.is_new:
        pairs += [("previous_end", want.previous_end),
                  ("last_read", want.last_read)]
    for key, txn in pairs:
        same("%s: %s" % (what, key), real(txn), number(got[key]))
    same(what + ": files", {k: len(v) for k, v in want.views.items()},
         got["files"])


def plan_output(what, want, got):
    same(what + ": dataset", want.dataset.name, got["dataset"])
    same(what + ": branch", want.branch, got["branch"])
    same(what + ": type", want.type, got["transaction_type"])
    if want.type != "APPEND":
        same(what + ": mode", want.write_mode, got["write_mode"])


# ---------------------------------------------------------------- builds

def views(what, build, reply):
    """What the command found in its directories.  The real versions are
    transaction numbers or, in a directory, the unique content of files."""
    seen = views_of(reply, build.transform)
    if seen is None:
        return

    def version(path, txn, got):
        return txn.real if isinstance(got, int) else txn.files[path].content

    def check(where, want, got):
        shown = {path: version(path, txn, got.get(path, 0))
                 for path, txn in want.items()}
        same("%s: %s" % (what, where), shown, got)
    for alias, at in build.plan.inputs.items():
        for kind, want in at.views.items():
            got = seen[alias][kind]
            if kind == "removed":
                want = last_versions(at, want, got)
            check("%s/%s" % (alias, kind), want, got)
    for alias in build.plan.outputs:
        check(alias + "/previous", build.output_view(alias, "previous"),
              seen[alias]["previous"])
        if "base" in seen[alias] and not build.staged[alias]:
            check(alias + "/base", build.output_view(alias, "current"),
                  seen[alias]["base"])


def live(what, build, reply):
    """Table 4: the views of the outputs after the command wrote."""
    for alias, views_seen in reply.get("live", {}).items():
        for kind, got in views_seen.items():
            want = {p: f.content if isinstance(f, File) else
                    f.files[p].content
                    for p, f in build.output_view(alias, kind).items()}
            same("%s: live %s/%s" % (what, alias, kind), want,
                 {p: v[0] for p, v in got.items()})


def last_versions(at, want, got):
    """Open: a removed path that was overwritten before: the version that the
    last run saw, or the last one there was."""
    out = {}
    for path, seen in want.items():
        out[path] = seen
        last = view(remover(at.read_end, path).parent).get(path)
        if last and got.get(path) in (last.real, last.files[path].content):
            out[path] = last
    return out


def committed(what, build, reply):
    """The transactions that a build left."""
    if reply.get("status") is not None:
        same(what + ": status", build.status, reply["status"])
    for alias in build.plan.outputs:
        got = number(reply["outputs"][alias].get("transaction"))
        txn = build.committed.get(alias)
        require((got is None) == (txn is None),
                "%s: output %s: want %s, got %s", what, alias, txn, got)
        if txn is not None:
            txn.real = got


def status(backend, model, name):
    got = backend.status(name)
    what = "status of " + name
    try:
        want = model.status(name)
    except Refused:
        return
    if want is None:
        require("error" in got or got.get("state") == "never",
                "%s: want nothing, got %s", what, got)
        return
    state, planned = want
    require("error" not in got, "%s: %s", what, got)
    if not planned.fresh_doubt:
        same(what, state, got["state"])
    for alias, at in planned.inputs.items():
        if at.is_new or not is_on_path(at.last_read, at.head):
            continue
        line = at.head.line()
        behind = line[line.index(at.last_read) + 1:]
        same("%s: %s is behind" % (what, alias), len(behind),
             got["behind"].get(alias, {}).get("transactions", 0))


def changes(backend, model, name):
    """The net change of inputs since the last build, whatever the decision."""
    if name not in model.committed or not hasattr(backend, "changes"):
        return
    try:
        planned = model.plan(model.committed[name].transform)
    except Refused:
        return
    for alias, at in planned.inputs.items():
        if at.is_new or at.kind != "normal":
            continue
        old, new = view(at.last_read), view(at.head)
        want = {p: "modified" if p in old else "added"
                for p in new if old.get(p) is not new[p]}
        want.update({p: "removed" for p in old if p not in new})
        same("changes of %s %s" % (name, alias), want,
             backend.changes(name, alias))
