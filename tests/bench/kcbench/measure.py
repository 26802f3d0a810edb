"""Runs one command and measures it: seconds on the wall's clock, or peak memory."""

import ctypes
import os
import pathlib
import time


class CommandFailed(Exception):
    """A measured command did not end as it should; the text says which and how."""


def _check(command, status, expect, log):
    code = os.waitstatus_to_exitcode(status)
    if code == expect:
        return
    said = pathlib.Path(log).read_text(errors="replace").strip()
    shown = " ".join(str(word) for word in command)
    raise CommandFailed(f"`{shown}` ended with {code} instead of {expect}: {said or 'it said nothing'}")


def seconds(command, env, cwd, log, expect=0):
    """How long `command` took, from before it is started until it is reaped. Its stdout is thrown away, its stderr
    goes to the file `log`.

    posix_spawn, because a start through the subprocess module costs as much as the programs that are measured here.
    It cannot change the folder, so this process does.
    """
    argv = [os.fspath(word) for word in command]
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
               (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
               (os.POSIX_SPAWN_OPEN, 2, os.fspath(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    os.chdir(cwd)
    start = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, env, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    took = time.perf_counter() - start
    _check(command, status, expect, log)
    return took


def peak_memory(command, env, cwd, log, expect=0):
    """The largest resident set of `command` in bytes, or of a child that it waited for.

    Linux hands a process' peak down through exec, and this Python is larger than kc: started directly, kc would seem
    to be as large as Python. So a shell forks, which begins a new count at the size of a shell (about 1 MB), and the
    fork waits until that shell has ended and this process, as the subreaper, has become its parent; only then does it
    exec the command, and its usage is ours to read.
    """
    _become_subreaper()
    script = '(read -r go; exec "$@" < /dev/null > /dev/null) <&3 3<&- & echo $!'
    argv = ["/bin/sh", "-c", script, "sh", *map(os.fspath, command)]
    go_read, go_write = os.pipe()
    pid_read, pid_write = os.pipe()
    os.chdir(cwd)
    try:
        shell = os.posix_spawn(argv[0], argv, env, file_actions=[
            (os.POSIX_SPAWN_OPEN, 2, os.fspath(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, go_read, 3), (os.POSIX_SPAWN_DUP2, pid_write, 1)])
        os.waitpid(shell, 0)
        pid = int(os.read(pid_read, 64))
        os.write(go_write, b"go\n")
        _, status, usage = os.wait4(pid, 0)
    finally:
        for descriptor in (go_read, go_write, pid_read, pid_write):
            os.close(descriptor)
    _check(command, status, expect, log)
    return usage.ru_maxrss * 1024


def _become_subreaper():
    pr_set_child_subreaper = 36
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(pr_set_child_subreaper, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
