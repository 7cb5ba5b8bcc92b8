/* style.c - colours and style: one set of variables for light, dark and print; the print values replace the variables
 * for renderers that do not support them (report_style_flat).
 * Blue against vermilion and grey differ for every kind of colour blindness, and shapes differ without colour. */
#include "web/report/report_priv.h"

const char report_style_colors[] =
    ":root{--paper:#fdfdfc;--card:#ffffff;--ink:#1b1f24;--soft:#5b6470;--line:#e3e5e8;--axis:#9aa1aa;--main:#0b64b8;"
    "--reach:#0b64b81a;--dim:#7d8792;--bad:#c2410c;--tag:#e8f1fa}"
    "@media(prefers-color-scheme:dark){:root{--paper:#121518;--card:#191d21;--ink:#e7eaee;--soft:#a0a8b2;--line:#"
    "2b3138;"
    "--axis:#59626d;--main:#5cb3ff;--reach:#5cb3ff1f;--dim:#8b95a1;--bad:#ff9561;--tag:#1d3347}}"
    "@media "
    "print{:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#333;--line:#ddd;--axis:#666;--main:#0b4f94;--dim:#777;"
    "--reach:#0b4f9412;--bad:#8f2d00;--tag:#eee}}";

const char report_style_chart[] =
    ".chart{display:block;width:100%;height:auto;font:13px system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}"
    ".chart text{fill:var(--soft)}.chart .mid{text-anchor:middle}.chart .end{text-anchor:end}"
    ".chart .tick{font-variant-numeric:tabular-nums}.chart .strong{font-weight:600;fill:var(--ink)}"
    ".chart .label{font-size:12px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}"
    ".chart .headline{font-size:18px;font-weight:600;fill:var(--ink)}.chart .note{font-size:12px;font-style:italic}"
    ".chart .empty{font-size:15px}.chart .title{font-size:12px}"
    ".paper{fill:var(--card)}.grid{stroke:var(--line);fill:none}.axis{stroke:var(--axis);fill:none}"
    ".step{fill:none;stroke:var(--main);stroke-width:2;stroke-linejoin:round}.reach{fill:var(--reach)}"
    ".front{fill:var(--main);stroke:var(--card);stroke-width:1.5}.front.once{fill:var(--card);stroke:var(--main);"
    "stroke-width:2}"
    ".dominated circle{fill:none;stroke:var(--dim);stroke-opacity:.75;pointer-events:all}.dense "
    "circle{stroke-opacity:.4}.dominated .own{stroke:var(--main);stroke-opacity:.6}"
    ".dominated .over{stroke:var(--bad);stroke-dasharray:2 1.6;stroke-opacity:.9}"
    ".dots{fill:none;stroke:var(--dim);stroke-opacity:.5;stroke-width:5;stroke-linecap:round}"
    ".failed{fill:none;stroke:var(--bad);stroke-width:1.8;pointer-events:all}"
    ".stopped{fill:none;stroke:var(--dim);stroke-width:1.5;pointer-events:all}"
    ".interval{stroke:var(--main);stroke-width:1.6;stroke-opacity:.55;fill:none}"
    ".bar{fill:var(--main);fill-opacity:.85}.bar.cost{fill:none;stroke:var(--dim);stroke-width:1.5}"
    ".whisker{stroke:var(--ink);stroke-width:1.2;fill:none}";

const char report_style_page[] =
    "*{box-sizing:border-box}html{color-scheme:light dark;-webkit-text-size-adjust:100%}"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe "
    "UI\",Roboto,sans-serif}"
    "main{max-width:1080px;margin:0 auto;padding:28px 20px 48px}"
    "h1{font-size:27px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:18px;margin:36px 0 4px}"
    "p{margin:4px 0 12px}.soft{color:var(--soft)}.small{font-size:13px}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px;margin:10px 0}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:18px 0}"
    ".tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px}"
    ".tile b{display:block;font-size:23px;font-weight:650;line-height:1.3;font-variant-numeric:tabular-nums}"
    ".tile span{color:var(--soft);font-size:13px;display:block}.tile .seen{color:var(--ink)}.once{font-style:italic}"
    ".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,360px),1fr));gap:10px}"
    ".strips{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,270px),1fr));gap:10px;margin:10px 0}"
    "figure{margin:0;background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 12px "
    "6px;min-width:0}"
    "figcaption{font-size:14px;font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}"
    "figcaption small{font-weight:400;color:var(--soft)}"
    ".importance{max-width:720px}.narrow{display:none}@media(max-width:640px){.narrow{display:block}.wide{display:none}"
    "main{padding:18px 12px 36px}"
    ".card{padding:8px}h1{font-size:23px}pre{white-space:pre-wrap;overflow-wrap:anywhere}}"
    ".scroll{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:10px;margin:10px 0}"
    "table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{padding:6px 12px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line)}"
    "th{font-weight:600;color:var(--soft);font-size:13px;vertical-align:bottom;white-space:normal}tr:last-child "
    "td{border-bottom:0}"
    "th:first-child,td:first-child{text-align:left}tr.special td{background:var(--tag);font-weight:600}"
    ".tag{font-size:12px;font-weight:600;color:var(--main);margin-left:6px}"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px "
    "14px;overflow-x:auto;margin:6px 0 14px;"
    "font:13.5px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
    "ul{margin:6px 0 12px;padding-left:20px}footer{margin-top:40px;color:var(--soft);font-size:13px}"
    "@media "
    "print{body{font-size:11pt}main{max-width:none;padding:0}.card,figure,.tile,tr,pre{break-inside:avoid}h2{break-"
    "after:avoid}"
    ".wide{display:block}.narrow{display:none}.scroll{overflow:visible}th,td{padding:3px 6px}table{font-size:9pt}"
    "pre{white-space:pre-wrap}.strips{grid-template-columns:repeat(3,1fr)}.two{grid-template-columns:1fr 1fr}"
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}";

/* -- for renderers without variables -- */

/* The value of a variable in print. */
static void add_print_color(struct strbuf *out, const char *name, size_t n)
{
    char key[32];

    snprintf(key, sizeof key, "--%.*s:", (int)n, name);
    const char *at = strstr(strstr(report_style_colors, "print{"), key);
    if (at != NULL)
        strbuf_add_n(out, at + strlen(key), strcspn(at + strlen(key), ";}"));
}

void report_style_flat(struct strbuf *out)
{
    const char *at = report_style_chart;

    for (const char *var = strstr(at, "var(--"); var != NULL; var = strstr(at, "var(--")) {
        const char *name = var + strlen("var(--");
        size_t n = strcspn(name, ")");
        strbuf_add_n(out, at, (size_t)(var - at));
        add_print_color(out, name, n);
        at = name + n + (name[n] == ')');
    }
    strbuf_add(out, at);
    strbuf_add(out, ".chart{font-family:\"Liberation Sans\",\"DejaVu Sans\",Arial,sans-serif}");
}
