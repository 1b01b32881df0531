"""Two ways to the real store, with one interface.

Cli runs one incrctl process a step.  Driver talks to tests/model_driver.c,
which does the same through libincr in one process.  Both keep `script`: the
shell commands that repeat what was done.

Every call gives a dict; on failure it has `error`: {"code": word, ...} and,
from incrctl, `exit`.  Transactions and builds are given as numbers.
"""

import json
import os
import shlex
import shutil
import subprocess

from model import VIEW_KINDS

FLAG_OPTIONS = (("require_incremental", "r"), ("allow_retention", "t"),
                ("allow_user_deletes", "u"), ("strict_append", "s"),
                ("v2_semantics", "2"), ("abort_if_empty", "e"))


def number(text):
    """42 of t42 or b42; None stays."""
    return int(text[1:]) if text else None


def transform_options(transform):
    """The options of incrctl that define a transform."""
    words = []
    for alias, spec in transform.inputs.items():
        at = ":" + spec.branch if spec.branch else ""
        words += ["-i", "%s=%s%s" % (alias, spec.dataset, at)]
        if spec.snapshot:
            words += ["--snapshot-input", alias]
        if spec.limit:
            words += ["--transaction-limit", "%s=%d" % (alias, spec.limit)]
    for alias, spec in transform.outputs.items():
        words += ["-o", "%s=%s" % (alias, spec.dataset)]
        if spec.write_mode:
            words += ["--write-mode", "%s=%s" % (alias, spec.write_mode)]
    words += ["--semantic-version=%d" % transform.semantic_version]
    for name, _ in FLAG_OPTIONS:
        if getattr(transform, name):
            words.append("--" + name.replace("_", "-"))
    if transform.branch != "main":
        words += ["--branch", transform.branch]
    for name in transform.fallbacks:
        words += ["--fallback", name]
    return words


def run_options(flags, job):
    words = [option for flag, option in (
        ("f", "--force"), ("s", "--force-snapshot"), ("k", "--skip"),
        ("p", "--preview")) if flag in flags]
    words += ["--allow-empty"] if job["allow_empty"] else []
    return words + (["--keep-failed"] if job["keep"] else [])


class Backend:
    """Each call is given twice: as words of incrctl and as fields of the
    line protocol; do() picks."""

    can_mount = True

    def __init__(self, directory):
        self.directory = directory
        self.store = os.path.join(directory, "store")
        self.work = os.path.join(directory, "work")
        os.mkdir(self.work)
        self.script = ["export INCR_STORE=$PWD/store",
                       'incrctl init "$INCR_STORE"']
        self.n_dirs = 0

    def do(self, words, fields):
        raise NotImplementedError

    def note(self, *words):
        self.script.append(" ".join(shlex.quote(str(w)) for w in words))

    def files(self, files):
        """A new directory with path -> File; gives its name."""
        self.n_dirs += 1
        name = "d%d" % self.n_dirs
        self.script.append("mkdir %s" % name)
        self.write(os.path.join(self.work, name), files, name)
        return name

    def write(self, top, files, name):
        os.makedirs(top, exist_ok=True)
        for path, file in files.items():
            full = os.path.join(top, path)
            parent = os.path.dirname(path)
            if parent:
                os.makedirs(os.path.dirname(full), exist_ok=True)
                self.script.append("mkdir -p %s/%s" % (name, parent))
            with open(full, "w", encoding="ascii") as stream:
                stream.write(file.content + "\n")
            # one time for all: a SNAPSHOT of what is there is relative
            os.utime(full, (1700000000, 1700000000))
            self.script.append("echo %s >%s/%s" % (file.content, name, path))
            self.script.append("touch -d @1700000000 %s/%s" % (name, path))
            if file.mode != 0o644:
                os.chmod(full, file.mode)
                self.script.append("chmod %o %s/%s" % (file.mode, name, path))

    def write_command(self, transform, job, dump):
        """The command of every run is `sh cmd NUMBER`; only the file changes,
        so that the arguments decide about freshness."""
        lines = []
        roots = ["$INCR_IN_" + a.upper() for a in transform.inputs]
        roots += ["$INCR_PREVIOUS_" + a.upper() for a in transform.outputs]
        hidden = ["{ %s" % "; ".join("echo %s" % r for r in roots)]
        hidden.append("grep -r '' %s; } >%s" % (" ".join(roots), dump))
        for alias, files in job["writes"].items():
            top = "$INCR_OUT_" + alias.upper()
            for path, file in files.items():
                if "/" in path:
                    lines.append("mkdir -p %s/%s" % (top,
                                                     os.path.dirname(path)))
                lines.append("echo %s >%s/%s" % (file.content, top, path))
                lines.append("chmod %o %s/%s" % (file.mode, top, path))
        for alias in job["aborts"]:
            name = "abort" if alias == "*" else "abort-" + alias
            lines.append(": >$INCR_MOUNT/.incr/" + name)
        lines.append("exit %d" % job["code"])
        with open(os.path.join(self.work, "cmd"), "w",
                  encoding="ascii") as stream:
            stream.write("\n".join(hidden + lines) + "\n")
        self.script.append("cat >cmd <<'END'\n%s\nEND" % "\n".join(lines))

    def close(self):
        """Exit status of what ran for long; a sanitizer sets it."""
        shutil.rmtree(self.directory, ignore_errors=True)
        return 0

    def create(self, name):
        return self.do(["dataset", "create", name], ["create", name])

    def commit(self, name, branch, type_, origin, files, flags):
        source = self.files(files)
        return self.do(
            ["commit", name, source, "--type", type_.lower(),
             "--origin", origin, "--branch", branch,
             *(["--rewrite"] if "r" in flags else []),
             *(["--skip-empty"] if "s" in flags else [])],
            ["commit", name, branch, type_, origin, flags + "-",
             os.path.join(self.work, source)])

    def remove(self, name, branch, origin, paths, flags):
        return self.do(
            ["rm", name, *paths, "--origin", origin, "--branch", branch,
             *(["--ignore-missing"] if "i" in flags else [])],
            ["rm", name, branch, "DELETE", origin, flags + "-", *paths])

    def begin(self, name, branch, type_, origin):
        return self.do(
            ["txn", "begin", name, "--type", type_.lower(),
             "--origin", origin, "--branch", branch],
            ["begin", name, branch, type_, origin])

    def put(self, txn, path, file, flags):
        source = os.path.join(self.files({"f": file}), "f")
        return self.do(
            ["txn", "put", "t%d" % txn, path, source,
             *(["--overwrite"] if "o" in flags else [])],
            ["put", txn, path, os.path.join(self.work, source), flags + "-"])

    def unput(self, txn, path):
        return self.do(["txn", "rm", "t%d" % txn, path], ["unput", txn, path])

    def commit_txn(self, txn):
        return self.do(["txn", "commit", "t%d" % txn], ["commit-txn", txn])

    def abort_txn(self, txn):
        return self.do(["txn", "abort", "t%d" % txn], ["abort-txn", txn])

    def branch_create(self, name, branch, at):
        return self.do(["branch", name, "create", branch, "--at", "t%d" % at],
                       ["branch-create", name, branch, at])

    def branch_reset(self, name, branch, to):
        return self.do(["branch", name, "reset", branch, "t%d" % to],
                       ["branch-reset", name, branch, to])

    def branch_delete(self, name, branch):
        return self.do(["branch", name, "delete", branch, "--yes"],
                       ["branch-delete", name, branch])

    def build_end(self, build, how, flags):
        return self.do(["build", how, "b%d" % build,
                        *(["--allow-empty"] if "a" in flags else [])],
                       ["end", how, flags + "-", build])


class Cli(Backend):
    def __init__(self, directory, mount_share=0.0):
        super().__init__(directory)
        self.program = os.environ["INCRCTL"]
        self.mount_share = mount_share
        self.can_mount = mount_share > 0
        self.n_runs = 0
        self.environment = dict(os.environ, INCR_STORE=self.store)
        for name in list(self.environment):
            if name.startswith("INCR_") and name != "INCR_STORE":
                del self.environment[name]
        self.opened = self.ask("init", self.store)

    def close(self):
        mountpoint = os.path.join(self.work, "m")
        if os.path.ismount(mountpoint):      # an unmount failed
            subprocess.run(["fusermount3", "-u", "-z", mountpoint],
                           check=False)
        return super().close()

    def raw(self, words):
        done = subprocess.run([self.program, *words], cwd=self.work,
                              env=self.environment, capture_output=True,
                              stdin=subprocess.DEVNULL, check=False)
        return (done.returncode, done.stdout.decode(errors="replace"),
                done.stderr.decode(errors="replace"))

    def do(self, words, fields):
        self.note("incrctl", *words)
        return self.ask(*words, "--json")

    def ask(self, *words):
        code, out, err = self.raw(words)
        try:
            lines = [json.loads(line) for line in out.splitlines()
                     if line.startswith("{")]
        except ValueError:
            return {"exit": code, "error": {"code": "bad-json: " + out}}
        if code and not (lines and "decision" in lines[0]):
            return {**failure(err), "exit": code}
        return {**(lines[0] if lines else {}), "lines": lines, "exit": code}

    def ls(self, name, branch):
        """Of a branch, or of a transaction given as @t42."""
        got = self.ask("ls", "--json",
                       name + ("" if branch[0] == "@" else ":") + branch)
        if "error" in got:
            return got
        return {e["path"]: (number(e["transaction"]), e["mode"])
                for e in got["lines"]}

    def log(self, name, branch):
        got = self.ask("log", "--json", "%s:%s" % (name, branch))
        return got if "error" in got else got["lines"]

    def diff(self, name, since, to):
        got = self.ask("diff", "--json", name, "t%d..t%d" % (since, to))
        if "error" in got:
            return got
        return {e["path"]: (e["status"], number(e["transaction"]))
                for e in got["lines"]}

    def status(self, name):
        return self.ask("status", "--json", name)

    def changes(self, name, alias):
        got = self.ask("changes", "--json", name, alias, "--all")
        return got if "error" in got else {
            e["path"]: e["status"] for e in got["lines"]}

    def plan(self, transform, flags=""):
        words = ["plan", "--json", transform.name,
                 *transform_options(transform)]
        words += ["--force"] if "f" in flags else []
        words += ["--force-snapshot"] if "s" in flags else []
        if "c" not in flags:
            words += ["--", *transform.command]
        return self.ask(*words)

    def run(self, transform, flags, job):
        """job: writes (alias -> path -> File), code, aborts (aliases, or
        `*` for all), keep, allow_empty."""
        self.n_runs += 1
        dump = os.path.join(self.work, "dump")
        result = os.path.join(self.work, "result")
        for name in (dump, result):
            if os.path.exists(name):
                os.unlink(name)
        mounts = self.n_runs * self.mount_share % 1 < self.mount_share
        self.write_command(transform, job, dump)
        words = ["run", transform.name, *transform_options(transform),
                 *run_options(flags, job),
                 "--view=mount" if mounts else "--view=copy",
                 "--result", "result", "--", *transform.command]
        self.note("incrctl", *words)
        code, _, err = self.raw(words)
        return self._read_result(code, err, result, dump)

    def run_mounted(self, transform, flags, job):
        """A build by hand: mount, write, unmount."""
        top = os.path.join(self.work, "m")
        os.makedirs(top, exist_ok=True)
        self.script.append("mkdir -p m")
        got = self.do(["mount", "m", transform.name,
                       *transform_options(transform),
                       *run_options(flags, job)], [])
        if "error" in got:
            return got
        views = {alias: {kind: read_tree(os.path.join(top, alias, kind))
                         for kind in VIEW_KINDS}
                 for alias in transform.inputs}
        for alias in transform.outputs:
            views[alias] = {
                "previous": read_tree(os.path.join(top, alias, "previous")),
                "base": read_tree(os.path.join(top, alias, "current"))}
        for alias, files in job["writes"].items():
            name = os.path.join("m", alias, "staging")
            self.write(os.path.join(self.work, name), files, name)
        live = {alias: {kind: read_tree(os.path.join(top, alias, kind))
                        for kind in ("added", "previous", "current")}
                for alias in transform.outputs}
        for alias in job["aborts"]:
            name = "abort" if alias == "*" else "abort-" + alias
            with open(os.path.join(top, ".incr", name), "w", encoding="ascii"):
                self.script.append("touch m/.incr/" + name)
        ended = self.do(["unmount", "m"], [])
        shown = self.ask("build", "show", got["build"]["build"], "--json")
        if "error" not in ended:
            shown.pop("error", None)
        return {**shown, **got["build"], **shown, **ended, "views": views,
                "live": live}

    @staticmethod
    def _read_result(code, err, result, dump):
        reply = {}
        if os.path.exists(result):
            with open(result, encoding="utf-8") as stream:
                reply = json.load(stream)
        if code == 125 and not reply.get("error"):
            reply.update(failure(err))
        if not reply.get("error"):
            reply.pop("error", None)
        reply["exit"] = code
        if os.path.exists(dump):
            reply["views"] = read_dump(dump)
        return reply


def failure(err):
    """The error object in the last lines of stderr, or its text."""
    for line in reversed(err.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                break
    return {"error": {"code": "?", "message": err}}


def read_tree(top):
    """path -> [content] of the files below a directory."""
    out = {}
    for where, _, names in os.walk(top):
        for name in names:
            full = os.path.join(where, name)
            with open(full, encoding="ascii", errors="replace") as stream:
                out[os.path.relpath(full, top)] = [stream.read().strip()]
    return out


def read_dump(name):
    """What the command saw: `alias-position` -> kind -> path -> content."""
    with open(name, encoding="ascii", errors="replace") as stream:
        lines = stream.read().splitlines()
    roots = []
    while lines and ":" not in lines[0]:
        roots.append(lines.pop(0))
    seen = {root: {} for root in roots}
    for line in lines:
        full, content = line.rsplit(":", 1)
        root = max((r for r in roots if full.startswith(r + "/")), key=len)
        seen[root][full[len(root) + 1:]] = content
    return [seen[root] for root in roots]


class Driver(Backend):
    """The same through the line protocol of model_driver."""

    def __init__(self, directory):
        super().__init__(directory)
        self.process = subprocess.Popen(
            [os.environ["INCR_MODEL_DRIVER"]], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd=self.work)
        self.opened = self.ask("open", self.store)

    def do(self, words, fields):
        self.note("incrctl", *words)
        return self.ask(*fields)

    def ask(self, *fields):
        line = "\t".join(str(f) for f in fields) + "\n"
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline()
        if not answer:
            code = self.process.wait()
            return {"error": {"code": "driver died, %d" % code,
                              "message": line}}
        return json.loads(answer)

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        code = self.process.wait()
        self.process.stdout.close()
        super().close()
        return code

    def ls(self, name, branch):
        got = self.ask("ls", name, branch)
        return got if "error" in got else {
            p: (v[0], v[1]) for p, v in got.items()}

    def log(self, name, branch):
        got = self.ask("log", name, branch)
        return got if "error" in got else [e for e in got if e]

    def diff(self, name, since, to):
        got = self.ask("diff", name, since, to)
        return got if "error" in got else {
            p: tuple(v) for p, v in got.items()}

    def status(self, name):
        return self.ask("status", name)

    def _define(self, transform):
        fields = ["version=%d" % transform.semantic_version,
                  "branch=" + transform.branch]
        for alias, spec in transform.inputs.items():
            fields.append("in=%s,%s,%s,%d,%d" % (
                alias, spec.dataset, spec.branch or "", spec.snapshot,
                spec.limit))
        for alias, spec in transform.outputs.items():
            fields.append("out=%s,%s,%s" % (alias, spec.dataset,
                                            spec.write_mode or ""))
        fields += ["fallback=" + f for f in transform.fallbacks]
        fields += ["arg=" + a for a in transform.command]
        fields.append("flags=" + "".join(
            letter for name, letter in FLAG_OPTIONS
            if getattr(transform, name)))
        self.ask("transform", transform.name, *fields)

    def plan(self, transform, flags=""):
        self._define(transform)
        return self.ask("plan", flags + "-")

    def run(self, transform, flags, job):
        self.write_command(transform, job, "dump")
        self.note("incrctl", "run", transform.name,
                  *transform_options(transform), *run_options(flags, job),
                  "--view=copy", "--", *transform.command)
        self._define(transform)
        got = self.ask("build", flags + "-")
        if "error" not in got and "build" in got:
            n_lines = len(self.script)
            got = {**got, **self._work(got, flags, job)}
            del self.script[n_lines:]
        return got

    def run_mounted(self, transform, flags, job):
        return self.run(transform, flags + "f", job)

    def _work(self, got, flags, job):
        for alias, files in job["writes"].items():
            self.write(got["staging"][alias], files, alias)
        for alias in job["aborts"]:
            if alias != "*":
                self.ask("abort-output", alias)
        if job["code"]:
            how = "leave" if job["keep"] else "fail"
        elif "p" in flags or "*" in job["aborts"]:
            how = "abort"
        else:
            how = "commit"
        return self.ask("end", how, "a" if job["allow_empty"] else "-")


def views_of(reply, transform):
    """alias -> kind -> path -> what stands for the version (a transaction
    number or the content), whichever way the reply came."""
    seen = reply.get("views")
    if seen is None:
        return None
    if isinstance(seen, dict):
        return {alias: {kind: {p: v[0] for p, v in files.items()}
                        for kind, files in views.items()}
                for alias, views in seen.items()}
    out = {}
    for alias, files in zip([*transform.inputs, *transform.outputs], seen):
        if alias in transform.outputs:
            out[alias] = {"previous": files}
            continue
        out[alias] = {kind: {p[len(kind) + 1:]: c for p, c in files.items()
                             if p.startswith(kind + "/")}
                      for kind in VIEW_KINDS}
    return out
