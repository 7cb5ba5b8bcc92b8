#!/usr/bin/env python3
"""pages.py - how fast the pages of `trawl serve` are with a large study: first paint, the front drawn, frames while zooming,
pointing, brushing and scrolling, memory. Headless Chromium without a GPU, so a person's browser is faster.

usage: bench/serve/pages.py TRAWL [TRIALS [RUNS]]
"""

import argparse
import os
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "web" / "serve"), str(ROOT / "bench")]
import browser  # noqa: E402
import measure  # noqa: E402
import record  # noqa: E402

# Calls step(k) in each frame for n frames; milliseconds of every frame.
FRAMES = """(async () => {
  const times = []; let last = 0;
  await new Promise((done) => { let k = 0; const tick = (now) => { if (last) times.push(now - last); last = now; if (k === %d) return done(); (%s)(k++); requestAnimationFrame(tick); }; requestAnimationFrame(tick); });
  times.sort((a, b) => a - b);
  return [times.reduce((a, b) => a + b, 0) / times.length, times[Math.floor(times.length * 0.95)]];
})()"""


def frames(b, what, step, n=90):
    before = measure.cpu_s(b.process.pid, below=True)
    mean, p95 = b.run(FRAMES % (n, step))
    used = 1000 * (measure.cpu_s(b.process.pid, below=True) - before) / n
    print("%-30s %6.1f frames/s   95 %% within %5.1f ms   %5.1f ms of processor a frame" % (what, 1000 / mean, p95, used), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trawl", type=os.path.abspath)
    parser.add_argument("trials", type=int, nargs="?", default=10000)
    parser.add_argument("runs", type=int, nargs="?", default=5)
    args = parser.parse_args()
    trawl, n, runs = args.trawl, args.trials, args.runs
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "big.db"
        record.record(trawl, store, "big", n)
        server, port = measure.serve(trawl, store)
        b = browser.Browser()
        try:
            origin = "http://127.0.0.1:%d" % port
            print("%d trials, load %.1f on %d cores" % (n, os.getloadavg()[0], os.cpu_count()))
            paints, fronts = [], []
            for k in range(runs):
                b.send("Network.clearBrowserCache")
                b.open("about:blank")
                b.open(origin + "/study/big")
                b.wait("performance.getEntriesByName('front drawn').length", timeout_s=60)
                paints.append(b.wait("performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
                fronts.append(b.run("performance.getEntriesByName('front drawn')[0].startTime"))
            print("first paint, cache empty: %s ms" % ", ".join("%.0f" % v for v in paints))
            print("front drawn, cache empty: %s ms" % ", ".join("%.0f" % v for v in fronts), flush=True)
            b.wait("document.querySelector('.front-plot canvas.marks')")
            b.run("new Promise((r) => setTimeout(r, 3000))")
            chart = "document.querySelector('.front-plot').chart"
            frames(b, "front: zoom in and out", "(k) => %s.zoomBy(k %% 40 < 20 ? 0.96 : 1 / 0.96)" % chart)
            frames(b, "front: pointer over trials", "(k) => { const c = %s; c.hover(c.nearest(200 + 5 * k, 200 + k)); }" % chart)
            frames(b, "front: brush", "(k) => { const c = %s; c.drawBrush(100, 80, 110 + 5 * k, 90 + 2 * k); if (k %% 8 === 0) c.finishBrush(100, 80, 110 + 5 * k, 90 + 2 * k); }" % chart)
            b.open(origin + "/study/big?tab=trials")
            b.wait("document.querySelector('.parallel')?.dataset.drawn && document.querySelector('.grid-row')", timeout_s=60)
            frames(b, "trials: brush along an axis", """(k) => { const e = document.querySelector('.axis-hit'), r = e.getBoundingClientRect();
                const at = (type, y) => e.dispatchEvent(new PointerEvent(type, {pointerId: 1, button: 0, clientX: r.x + 5, clientY: y, bubbles: true}));
                if (!k) { e.setPointerCapture = () => {}; at('pointerdown', r.y + 30); } at('pointermove', r.y + 40 + k * 1.5); }""")
            frames(b, "trials: scroll the table", "(k) => { document.querySelector('.grid').scrollTop = k * 400; }")
            b.send("HeapProfiler.collectGarbage")
            print("memory of the page's script: %.1f MB" % (b.run("performance.memory.usedJSHeapSize") / 1e6))
        finally:
            b.close()
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
