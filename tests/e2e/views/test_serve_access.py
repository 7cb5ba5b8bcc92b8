"""test_serve_access.py - `trawl serve`: hosts, tokens and control, and requests that are malformed, oversized, slow or hostile."""

import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import socket
import tempfile
import threading
import time
import urllib.parse

import tap
from serve_client import S, serving, big, control, hardened


def test_hosts(folder):
    with serving(big(folder), "--host", "trawl.example,other.example") as s:
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8080", "trawl.example", "other.example:443"):
            tap.equal(s.request("/api/v1/version", host=host)[0], 200)
        for host in ("evil.example", "localhost.evil.example", "localhost:", "localhost:x", "127.0.0.1.evil.example", "[::1", "[::1]x",
                     "10.0.0.1", "a" * 300, "localhost@evil.example", "trawl.example."):
            s.fails("/api/v1/version", 403, "Host", host=host)
        assert s.raw(b"GET /api/v1/version HTTP/1.0\r\n\r\n").split(b" ")[1] in (b"403", b"400")
        assert s.raw(b"GET /api/v1/version HTTP/1.1\r\nConnection: close\r\n\r\n").split(b" ")[1] in (b"403", b"400")


def test_a_token_is_needed_elsewhere(folder):
    store = big(folder)
    with serving(store, "--bind", "0.0.0.0") as s:
        token = s.token
        s.fails("/api/v1/studies", 401, "token")
        for bad in ("", token[:-1], token + "0", token.upper() + "x", "Bearer", "0" * 48):
            tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + bad)[0], 401)
            tap.equal(s.request("/api/v1/studies", Cookie="trawl_%d=%s" % (s.port, bad))[0], 401)
        for path in ("/", "/study/big", "/api/v1/events", S + "/export", "/nothing"):
            tap.equal(s.request(path)[0], 401)
        tap.equal(s.request("/assets/style.css")[0], 200)  # of the form, and in every copy of the program
        tap.equal(s.request("/api/v1/studies?token=" + token)[0], 401)
        assert b"<form" in s.request("/")[2]
        tap.equal(s.request("/?token=" + token[:-1] + "x")[0], 401)
        status, head, _ = s.request("/?token=" + token)
        assert status == 303 and head["location"] == "/" and "HttpOnly" in head["set-cookie"] and "SameSite=Strict" in head["set-cookie"]
        cookie = head["set-cookie"].split(";")[0]
        tap.equal(s.request("/api/v1/studies", Cookie="a=b; " + cookie)[0], 200)
        tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + token)[0], 200)
        tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + token, host="evil.example")[0], 403)
        tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + token, host="192.0.2.7:80")[0], 200)
        form = s.request("/login", method="POST", body=b"token=" + token.encode())
        assert form[0] == 303 and form[1]["set-cookie"].split(";")[0] == cookie
        tap.equal(s.request("/login", method="POST", body=b"token=no")[0], 401)
        tap.equal(s.request("/login", method="POST", body=b"\xff" * 5000)[0], 401)
    own = tap.write(folder, "token", "correct-horse-battery\n")
    with serving(store, "--bind", "0.0.0.0", "--token-file", own) as s:
        assert "token" not in s.url
        tap.equal(s.request("/api/v1/studies", Authorization="Bearer correct-horse-battery")[0], 200)
    tap.fails("serve", "--store", store, "--token-file", tap.write(folder, "short", "abc"), code=2, says=("16", "openssl"))


def login(s, **fields):
    status, head, body = s.request("/login", method="POST", body=urllib.parse.urlencode(fields).encode())
    return status, head.get("location"), body.decode()


def test_the_form_keeps_the_address(folder):
    deep = "/study/a%20b/trial/3?tab=trials&f=cost:1:2"
    with serving(big(folder), "--bind", "0.0.0.0") as s:
        token = s.token
        page = s.request(deep)[2].decode()
        assert 'name="next" value="%s"' % deep.replace("&", "&amp;") in page, page
        tap.equal(login(s, token=token, next=deep)[:2], (303, deep))
        status, _, page = login(s, token="wrong", next=deep)
        assert status == 401 and "That is not the token" in page and deep.replace("&", "&amp;") in page, page
        tap.equal(s.request(deep + "&token=" + token)[1]["location"], deep)
        tap.equal(s.request("/study/a?token=%s&tab=params" % token)[1]["location"], "/study/a?tab=params")
        assert 'value="/study/x"' in s.request("/login?next=%2Fstudy%2Fx")[2].decode()
        for bad in ("//evil.example", "https://evil.example", "/\\evil.example", "evil", "", "/a\r\nSet-Cookie: a=b", "/<script>\u00e9", "/%s" % ("a" * 5000)):
            status, location, _ = login(s, token=token, next=bad)
            assert (status, location) in ((303, "/"), (401, None)), (bad, status, location)


def test_a_private_store_needs_a_token_on_the_loopback_too(folder):
    """Any user of the machine can connect to it."""
    store = big(folder)  # in a folder that others may not enter
    with serving(store, token=True) as s:
        s.fails("/api/v1/studies", 401, "token")
        token = s.token
        tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + token)[0], 200)
    with tempfile.TemporaryDirectory(dir="/tmp") as public:
        os.chmod(public, 0o755)
        copy = pathlib.Path(public, "s.db")
        shutil.copy(store, copy)
        for mode, needed in ((0o644, False), (0o640, True), (0o600, True)):
            os.chmod(copy, mode)
            with serving(copy, token=True) as s:
                tap.equal(s.request("/api/v1/studies")[0], 401 if needed else 200)
                tap.equal("token" in s.url, needed)
        os.chmod(copy, 0o644)
        with serving(copy, "--bind", "127.0.0.2") as s:
            assert "token=" in s.url
        with serving(copy, "--token-file", folder / "wanted", token=True) as s:
            said = s.process.stderr.readline() + s.process.stderr.readline()
            assert "--token-file is given, so every request needs its token" in said and "may not read" not in said, said
            tap.equal(s.request("/api/v1/studies")[0], 401)
    file = folder / "made"  # stays when the server is started again
    for _ in range(2):
        with serving(store, "--token-file", file, token=True) as s:
            own = file.read_text().strip()
            assert len(own) == 48 and file.stat().st_mode & 0o777 == 0o600
            tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + own)[0], 200)
            tap.equal(s.request("/api/v1/studies")[0], 401)
    tap.equal(file.read_text().strip(), own)
    tap.fails("serve", "--store", store, "--bind", "0.0.0.0", "--no-token", code=2, says="--no-token")
    tap.fails("serve", "--store", store, "--token-file", file, "--no-token", code=2, says="--no-token")
    tap.fails("serve", "--store", store, "--token-file", folder / "none" / "t", code=1, says="--token-file")


def test_the_browser_that_is_opened_gets_a_ticket(folder):
    """Its address stands in the list of processes for a moment: it is good once."""
    opener = tap.write(folder, "xdg-open", "#!/bin/sh\necho \"$1\" > %s/part && mv %s/part %s/opened\n" % ((folder,) * 3))
    opener.chmod(0o755)
    env = {**os.environ, "PATH": "%s:%s" % (folder, os.environ["PATH"]), "DISPLAY": ":99"}
    with serving(big(folder), "--open", "yes", token=True, env=env) as s:
        tap.wait_for(lambda: (folder / "opened").exists(), s.process)
        ticket = re.search(r"token=([0-9a-f]{48})", (folder / "opened").read_text()).group(1)
        assert ticket not in s.url
        status, head, _ = s.request("/?token=" + ticket)
        tap.equal(status, 303)
        tap.equal(s.request("/api/v1/studies", Cookie=head["set-cookie"].split(";")[0])[0], 200)
        tap.equal(s.request("/?token=" + ticket)[0], 401)
        tap.equal(s.request("/api/v1/studies", Authorization="Bearer " + ticket)[0], 401)


def test_failures_for_people_are_pages(folder):
    with serving(big(folder)) as s:
        for path, want, says in (("/nothing/here", 404, "All studies"), ("/study/a/", 400, "ends with"), (S + "/export?rule=%3Cb%3E", 400, "&lt;b&gt;")):
            status, head, body = s.request(path, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
            hardened(head)
            assert status == want and head["content-type"].startswith("text/html") and says in body.decode() and "<b>" not in body.decode(), (path, status, body)
            assert s.request(path)[1]["content-type"].startswith("application/json")


def test_control(folder):
    store = big(folder)
    with serving(store) as s:
        tap.equal(control(s, b'{"action": "pause"}', "x")[0], 403)
    with serving(store, "--control") as s:
        csrf = s.get("/api/v1/version")["csrf"]
        good = b'{"action": "add", "trials": 5}'
        for more in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": None}, {"X_Trawl_Csrf": None},
                     {"X_Trawl_Csrf": csrf[:-1]}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                     {"Origin": "http://localhost:%d.evil.example" % s.port}):
            tap.equal(control(s, good, csrf, **more)[0], 403)
        tap.equal(control(s, good, csrf, Content_Type="text/plain")[0], 415)
        tap.equal(s.get(S)["trials_max"], 1000)
        status, answer = control(s, good, csrf, Sec_Fetch_Site="same-origin")
        assert status == 200 and answer["ok"], answer
        tap.wait_for(lambda: s.get(S)["trials_max"] == 1005)
        for body in (b"", b"[]", b"{", b"{}", b'{"action": "explode"}', b'{"action": 3}', b'{"action": "add"}',
                     b'{"action": "add", "trials": -1}', b'{"action": "add", "trials": 1e300}', b"\xff" * 100, b"[" * 60000):
            status, answer = control(s, body, csrf)
            assert status == 400 and answer["error"], (body[:30], status, answer)
        for body, word in ((b'{"action": "add", "trials": "x"}', "trials is not a whole number"),
                           (b'{"action": "add", "trials": 1, "budget_s": "1h"}', "budget_s is not a number"),
                           (b'{"action": "add", "trials": "5"}', "trials is not a whole number that fits; a number is written without"),
                           (b'{"action": "add", "trials": 1, "budget_s": "60"}', "budget_s is not a number; a number is written without"),
                           (b'{"action": "stop\\u0000x"}', "\\u0000"),
                           (b'{"action": "priority", "priority": 2.5}', "priority is not a whole number"),
                           (b'{"action": "priority"}', "'priority' is missing"),
                           (b'{"action": "add", "trials": 1, "trials": 2}', "'trials' is given twice"),
                           (b'{"action": "explode"}', "'explode'; pause, continue, stop, add, priority, retry and confirm"),
                           (b'{"action": "add", "trails": 5}', "add takes no field 'trails'"),
                           (b'{"action": "pause", "trials": 5}', "pause takes no field 'trials'"),
                           (b'{"action": "pause", "now": "yes"}', "now is neither"),
                           (b'{"action": "pause", "study": "other"}', "no field 'study'")):
            status, answer = control(s, body, csrf)
            assert status == 400 and word in "%(error)s; %(hint)s" % {"hint": "", **answer}, (body, status, answer)
        tap.equal(control(s, b"x" * 70000, csrf)[0], 413)
        tap.equal(control(s, b'{"action": "pause"}', csrf)[0], 200)
        tap.wait_for(lambda: s.get(S)["state"] == "paused")
        tap.equal(control(s, b'{"action": "pause"}', csrf)[0], 409)
        tap.equal(s.request(S + "/control")[0], 405)


def test_methods_and_paths(folder):
    with serving(big(folder)) as s:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"):
            status, head, _ = s.request(S, method=method, body=b"")
            assert status == 405 and head["allow"] == "GET, HEAD", (method, status)
        for path in ("/nothing", "/api", "/api/v1", "/api/v1/", "/api/v2/studies", S + "/", S + "//trials", "/assets", "/assets/",
                     "/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2fetc%2fpasswd", "/../../etc/passwd",
                     "/assets/charts", "/assets/%00", "/assets/app.js%00.png", "/%", "/%zz", "/%ff", "/a/b/c/d/e/f/g/h/i/j", "//",
                     "/api/v1/studies/%2e%2e", "/assets//etc/passwd", "/.git/config", "/assets/charts/../app.js"):
            status, head, body = s.request(path)
            assert status in (400, 404) and json.loads(body)["error"], (path, status, body[:200])
            assert b"root:" not in body
        for path in ("/", "/study/big", "/study/x/y?z=1", "/compare?a=1", "/index.html"):
            assert s.request(path)[0] == 200 and s.request(path)[1]["content-type"].startswith("text/html"), path


def test_malformed_and_oversized_requests(folder):
    with serving(big(folder)) as s:
        host = b"Host: localhost\r\nConnection: close\r\n"
        for data in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\x00\xff\x16\x03\x01" * 50, b"GET / HTTP/9.9\r\n" + host + b"\r\n",
                     b"GET /\x01\x02 HTTP/1.1\r\n" + host + b"\r\n", b"G" * 100000,
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n" + host + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 100000 + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"Content-Length: -5\r\n\r\n",
                     b"POST /login HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n",
                     b"POST /login HTTP/1.1\r\n" + host + b"Content-Length: 70000\r\n\r\n" + b"x" * 70000,
                     b"POST /login HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"POST /login HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 32768 + b"\r\n" +
                     b"8000\r\n" + b"x" * 32768 + b"\r\n" + b"8000\r\n" + b"x" * 32768 + b"\r\n0\r\n\r\n",
                     b"GET /api/v1/studies?" + b"a=1&" * 50 + b" HTTP/1.1\r\n" + host + b"\r\n",
                     b"GET /api/v1/studies?" + b"a" * 5000 + b" HTTP/1.1\r\n" + host + b"\r\n"):
            with socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) as c:
                with contextlib.suppress(OSError):
                    c.sendall(data)
                    c.shutdown(socket.SHUT_WR)
                got = b""
                with contextlib.suppress(OSError):
                    while part := c.recv(65536):
                        got += part
            assert got == b"" or re.match(rb"HTTP/1\.[01] 4\d\d |HTTP/1\.[01] 50[15] ", got) or b" 200 OK" in got[:20] or \
                b" 303 " in got[:20], (data[:60], got[:200])
            if b"70000\r\n" in data or len(data) > 90000:
                assert b" 200 " not in got[:20], data[:60]
        tap.equal(s.request("/api/v1/studies")[0], 200)


def test_mutated_requests(folder):
    """Real requests with bytes changed, doubled, cut out and moved, the same ones each time; the sanitizers' build runs this too."""
    rng = random.Random(7)
    spice = [b"%", b"%00", b"%2e%2e", b"..", b"/", b"//", b"?", b"&", b"=", b"#", b"\r\n", b"\n", b"\0", b"\xff\xfe", b" ", b":", b"-1", b"1e999",
             b"99999999999999999999", b"nan", b"*", b",", b"\"", b"{", b"chunked", b"a" * 300]
    with serving(big(folder)) as s:
        seeds = [b"GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip;q=0.5, *\r\nIf-None-Match: \"0\", W/\"1\"\r\nCookie: a=b; c=d\r\n\r\n" % path.encode()
                 for path in (S + "/trials?offset=1&limit=5&sort=score&order=desc&fields=number,params&state=done&since=0", S + "/pick?budget_s=20",
                              S + "/model/slice?param=train.gamma&at=knee", S + "/trials/3/curves?metrics=perf&points=50", S + "/trials/3?against=4",
                              "/assets/charts/front.js", "/study/a%20b?f=cost:1:2", "/?token=abc")]
        seeds.append(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\ntoken=abc")
        for k in range(300):
            data = bytearray(seeds[k % len(seeds)])
            for _ in range(rng.randint(1, 5)):
                at, n = rng.randrange(len(data)), rng.randint(1, 12)
                kind = rng.randrange(5)
                if kind == 0:
                    data[at] = rng.randrange(256)
                elif kind == 1:
                    data[at:at + n] = b""
                elif kind == 2:
                    data[at:at] = rng.choice(spice)
                elif kind == 3:
                    data[at:at] = data[at:at + n] * rng.randint(1, 40)
                else:
                    to = rng.randrange(len(data))
                    data[to:to] = data[at:at + n]
            with socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) as c:
                got = b""
                c.settimeout(0.4)  # one that waits for more is left alone
                with contextlib.suppress(OSError):
                    c.sendall(bytes(data))
                    c.shutdown(socket.SHUT_WR)
                    while part := c.recv(65536):
                        got += part
            assert got == b"" or re.match(rb"HTTP/1\.[01] (200|206|303|304|4\d\d|501|503|505) ", got), (bytes(data), got[:200])
        tap.equal(s.request("/api/v1/studies")[0], 200)


def test_slow_clients_do_not_hold_others_up(folder):
    with serving(big(folder)) as s:
        slow = [socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) for _ in range(60)]
        for c in slow:
            c.sendall(b"GET / HT")
        readers = [socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) for _ in range(20)]
        for c in readers: # they ask for a lot and take none of it
            c.sendall(b"GET %s/trials?limit=20000&fields=params,number HTTP/1.1\r\nHost: localhost\r\n\r\n" % S.encode() * 20)
        for _ in range(20):
            tap.equal(s.request("/api/v1/studies")[0], 200)
        ended = threading.Event()

        def drip():  # a byte now and then, for ever
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    slow[0].sendall(b"x")
                    time.sleep(0.5)

        dripper = threading.Thread(target=drip)
        dripper.start()
        try:
            for c in slow:  # the request's time is limited, bytes that come in do not lengthen it
                c.settimeout(tap.PATIENCE_S)
                with contextlib.suppress(ConnectionResetError):
                    assert c.recv(1000) == b""
        finally:
            ended.set()
            dripper.join()
        for c in slow + readers:
            c.close()
        tap.equal(s.request("/api/v1/studies")[0], 200)


def test_ports_and_usage(folder):
    store = big(folder)
    with serving(store) as s:
        tap.fails("serve", "--store", store, "--port", s.port, code=1, says=("in use", "--port 0"))
    tap.fails("serve", "--port", "70000", code=2, says="65535")
    tap.fails("serve", "--bind", "no.such.host.invalid", code=2, says="--bind")
    tap.fails("serve", "--open", "perhaps", code=2, says="yes or no")
    assert "--control" in tap.run("serve", "--help")[0]
