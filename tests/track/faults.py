"""faults.py - an HTTP server for tests with every failure of a tracker or a network.

A fake tracker derives from Fake and answers in `answer`; the failures are here, for every fake:

    server.fail("status", code=503, times=3)             answers 503 three times, then works again
    server.fail("status", code=429, retry_after=2)       with Retry-After in seconds
    server.fail("status", code=429, retry_after_date=2)  with Retry-After as an HTTP date
    server.fail("commit_then_drop")   executes the request and closes the connection without a reply
    server.fail("drop")               closes the connection without executing the request
    server.fail("half")               executes the request and sends half of the reply
    server.fail("html")               200 and a login page; the request is not executed
    server.fail("redirect", to=URL)   307 to another address; the request is not executed
    server.fail("trickle")            executes the request and sends the reply a byte at a time, too slowly for the client's timeout
    server.fail("black_hole")         takes the request and never answers

Each takes `times` (how many requests, default 1) and `match` (only paths that this regular expression finds). Requests
are in server.requests. Start with server.start() or `with`; server.url has no slash at its end.
"""
import base64
import email.utils
import http.server
import json
import pathlib
import re
import socket
import socketserver
import ssl
import struct
import subprocess
import threading
import time
import urllib.parse

LOGIN_PAGE = b"<!doctype html>\n<html><head><title>Sign in</title></head><body><form>user, password</form></body></html>\n"
TRICKLE_S = 0.2  # between two bytes


class Reply:
    """A fake's answer."""

    def __init__(self, code=200, body=None, headers=None, content_type="application/json"):
        self.code = code
        self.body = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.headers = headers or {}
        self.content_type = content_type


class Request:
    """A request: path without query and as sent, query as a dict of the last values, headers with lower-case names."""

    def __init__(self, method, target, headers, body):
        self.method = method
        self.target = target
        self.path, _, query = target.partition("?")
        self.query = {k: v[-1] for k, v in urllib.parse.parse_qs(query, keep_blank_values=True).items()}
        self.headers = headers
        self.body = body
        self.at = time.monotonic()

    def json(self):
        return json.loads(self.body, parse_constant=no_constant)


def no_constant(text):
    raise ValueError("%s is not JSON" % text)


class Fault:
    def __init__(self, kind, times, match, more):
        self.kind, self.times, self.match, self.more = kind, times, re.compile(match), more


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            parts = []
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                parts.append(self.rfile.read(size))
                self.rfile.readline()
                if size == 0:
                    return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def drop(self):
        """Closes with a reset, as a dying server or a firewall does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def send(self, reply, cut=None, trickle=False):
        self.send_response(reply.code)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if trickle:
            for i in range(len(reply.body)):
                if self.server.closing.wait(TRICKLE_S):
                    break
                self.wfile.write(reply.body[i:i + 1])
                self.wfile.flush()
        else:
            self.wfile.write(reply.body[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, ssl.SSLError, ValueError, OSError):
            self.close_connection = True  # the client went away

    def serve(self):
        server = self.server
        request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, self.body())
        with server.lock:
            server.requests.append(request)
            fault = server.take_fault(request.path)
        kind = fault.kind if fault else None
        if kind == "drop":
            return self.drop()
        if kind == "black_hole":
            server.closing.wait()
            return self.drop()
        if kind == "html":
            return self.send(Reply(200, LOGIN_PAGE, content_type="text/html; charset=utf-8"))
        if kind == "redirect":
            return self.send(Reply(307, b"", {"Location": fault.more["to"] + self.path}))
        if kind == "status":
            return self.send(fault_status(fault.more))
        with server.lock:
            try:
                reply = server.answer(request)
            except Exception as bad:  # a fake that breaks is a failed test, not a retry
                server.broken.append(repr(bad))
                reply = Reply(500, {"error": repr(bad)})
        if kind == "commit_then_drop":
            return self.drop()
        if kind == "half":
            return self.send(reply, cut=len(reply.body) // 2)
        return self.send(reply, trickle=kind == "trickle")

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = serve


def fault_status(more):
    headers = {}
    if "retry_after" in more:
        headers["Retry-After"] = str(more["retry_after"])
    if "retry_after_date" in more:
        headers["Retry-After"] = email.utils.formatdate(time.time() + more["retry_after_date"], usegmt=True)
    return Reply(more["code"], more.get("body", {"error": "made for the test"}), headers)


class Fake(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A server on a free port of 127.0.0.1, or on `port`. tls: (certificate file, key file)."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port=0, tls=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.RLock()  # guards everything below and the data of the fake
        self.requests, self.faults, self.broken = [], [], []
        self.closing = threading.Event()
        self.tls = None
        if tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*tls)
        self.port = self.server_address[1]
        self.url = "%s://127.0.0.1:%d" % ("https" if tls else "http", self.port)

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)  # HTTPServer's would ask the network for this machine's name

    def answer(self, request):
        """The reply to a request, or an exception when the fake itself is wrong. Called under the lock."""
        raise NotImplementedError

    def handle_error(self, request, client_address):
        pass  # a client that refuses our certificate ends the handshake

    def finish_request(self, request, client_address):
        if self.tls:
            request.settimeout(10)
            request = self.tls.wrap_socket(request, server_side=True)
            request.settimeout(None)
        super().finish_request(request, client_address)

    def fail(self, kind, times=1, match="", **more):
        assert kind in ("status", "commit_then_drop", "drop", "half", "html", "redirect", "trickle", "black_hole"), kind
        with self.lock:
            self.faults.append(Fault(kind, times, match, more))

    def heal(self):
        """Removes all faults."""
        with self.lock:
            self.faults.clear()

    def take_fault(self, path):
        for fault in self.faults:
            if fault.times > 0 and fault.match.search(path):
                fault.times -= 1
                return fault
        return None

    def pending_faults(self):
        """The number of faults that have not happened yet; 0 shows that the test met all of its faults."""
        with self.lock:
            return sum(fault.times for fault in self.faults)

    def start(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self):
        self.closing.set()
        self.shutdown()
        self.server_close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()


class Elsewhere(Fake):
    """The target host of a redirect: it must get no credentials and no request."""

    def answer(self, request):
        return Reply(200, {})


class BlackHole:
    """A port that accepts connections and never answers, not even the TLS handshake."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]
        self.url = "http://127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()


# ---- certificates ----

CA_CONFIG = """
[ca]
default_ca = own
[own]
database = {0}/index.txt
serial = {0}/serial
new_certs_dir = {0}
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[ca_ext]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
[server_ext]
subjectAltName = IP:127.0.0.1,DNS:localhost
[client_ext]
extendedKeyUsage = clientAuth
"""


class Certificates:
    """Made in `folder` by the openssl command: an authority `ca`, and pairs (certificate, key) `good`, `expired` and `client`
    that it signed, and `self_signed`."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "openssl.cnf"
        self.config.write_text(CA_CONFIG.format(self.folder))
        (self.folder / "index.txt").write_text("")
        (self.folder / "serial").write_text("1000\n")
        self.ca = self.path("ca.pem")
        self.own("ca", "Test authority", "ca_ext")
        self.self_signed = self.own("self", "self-signed", "server_ext")
        self.good = self.signed("good", "20200101000000Z", "20990101000000Z", "server_ext")
        self.expired = self.signed("expired", "20200101000000Z", "20200201000000Z", "server_ext")
        self.client = self.signed("client", "20200101000000Z", "20990101000000Z", "client_ext")

    def path(self, name):
        return str(self.folder / name)

    def openssl(self, *args):
        done = subprocess.run(["openssl", *args, "-config", str(self.config)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, "openssl %s: %s" % (args[0], done.stderr)

    def own(self, name, title, extensions):
        pair = self.path(name + ".pem"), self.path(name + ".key")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                     "/CN=" + title, "-extensions", extensions, "-days", "3650", "-out", pair[0], "-keyout", pair[1])
        return pair

    def signed(self, name, start, end, extensions):
        pair = self.path(name + ".pem"), self.path(name + ".key")
        self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                     "/CN=" + name, "-out", self.path(name + ".csr"), "-keyout", pair[1])
        self.openssl("ca", "-batch", "-notext", "-startdate", start, "-enddate", end, "-extensions", extensions, "-cert",
                     self.ca, "-keyfile", self.path("ca.key"), "-in", self.path(name + ".csr"), "-out", pair[0])
        return pair


# ---- a proxy ----


class ConnectProxy:
    """A proxy that opens tunnels (CONNECT) to any port of this machine, for any name, and does nothing else.
    `asked` holds its requests: (target, headers with lower-case names), `bytes` the bytes through the tunnels. login: the
    "user:password" that it requires, or None."""

    def __init__(self, login=None):
        self.login = login
        self.asked, self.bytes = [], []
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.socket.getsockname()[1]

    def address(self, login=None):
        return "http://%s127.0.0.1:%d" % (login + "@" if login else "", self.port)

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def accept(self):
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(4096)
                if not more:
                    return
                head += more
            first, *lines = head.split(b"\r\n\r\n")[0].decode().split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
            method, target, _ = first.split()
            self.asked.append((method + " " + target, headers))
            want = "Basic " + base64.b64encode(self.login.encode()).decode() if self.login else None
            if want and headers.get("proxy-authorization") != want:
                client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"\r\n"
                               b"Content-Length: 0\r\n\r\n")
            elif method != "CONNECT":
                client.sendall(b"HTTP/1.1 405 Only tunnels\r\nContent-Length: 0\r\n\r\n")
            else:
                with socket.create_connection(("127.0.0.1", int(target.rpartition(":")[2]))) as server:
                    client.sendall(b"HTTP/1.1 200 Tunnel\r\n\r\n")
                    back = threading.Thread(target=self.pump, args=(server, client), daemon=True)
                    back.start()
                    self.pump(client, server)
                    back.join()
        except OSError:
            pass
        finally:
            client.close()

    def pump(self, a, b):
        try:
            while data := a.recv(65536):
                self.bytes.append(data)
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass
