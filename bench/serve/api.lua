local paths = {"/api/v1/studies", "/api/v1/studies/huge", "/api/v1/studies/huge/trials?limit=20000&fields=number,state,score,cost,on_front,params", "/api/v1/studies/huge/trials?limit=100&sort=score&order=desc", "/api/v1/studies/huge/front", "/api/v1/studies/huge/hypervolume", "/api/v1/studies/huge/trials/77/curves?metrics=perf,score", "/api/v1/studies/huge/trials/77", "/api/v1/studies/huge/insight", "/api/v1/studies/huge/pick?budget_s=20", "/api/v1/studies/huge/model/slice?param=train.gamma"}
local i = 0
request = function() i = i + 1; return wrk.format("GET", paths[i % #paths + 1], {["Accept-Encoding"]="gzip", ["Host"]="localhost"}) end
delay = function() return 100 end
done = function(summary, latency, requests)
  io.write(string.format("requests/s %.0f p50 %.2f ms p95 %.2f ms p99 %.2f ms max %.2f ms errors %d\n", summary.requests / summary.duration * 1e6, latency:percentile(50)/1e3, latency:percentile(95)/1e3, latency:percentile(99)/1e3, latency.max/1e3, summary.errors.status))
end
