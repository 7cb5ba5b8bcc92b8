/* slice.js - score along one parameter by the model, the others as in one trial: mean, band of 95 %, and
 * the places of all trials. */
import {axisValue} from '../study/study_data.js';
import {h} from '../dom.js';
import {byColour} from './colour.js';
import {Cloud, MARKS} from './cloud.js';
import {followX, nearest, tipRow} from './hover.js';
import {ticks, toUnit} from './scale.js';
import {colors, mount} from './vega.js';
import * as fmt from '../format.js';

const DOTS_MAX = 1500, HEIGHT = 138, LEFT = 44, RIGHT = 10, TOP = 8, BOTTOM = 24;

export async function showSlice(el, data, param, slice, range, selection) {
  const c = colors(), width = Math.max(180, el.clientWidth) - LEFT - RIGHT;
  const place = (value) => toUnit(param, typeof value === 'number' ? value : Math.max(0, param.choices?.findIndex((choice) => String(choice) === String(value)) ?? 0));
  const isCategory = param.scale === 'categorical';
  const axis = isCategory ? {...param, min: -0.5, max: param.choices.length - 0.5} : param;
  const at = isCategory ? (value) => toUnit(axis, param.choices.findIndex((choice) => String(choice) === String(value))) : place;
  const points = slice.points.map((p) => ({u: at(p.value), mean: p.score, lo: p.score_lo, hi: p.score_hi}));
  const cloud = new Cloud(el), x = new Float32Array(data.plotted.length), y = new Float32Array(data.plotted.length);
  const every = Math.ceil(data.plotted.length / DOTS_MAX), index = [];
  cloud.resize(width + LEFT + RIGHT, HEIGHT + TOP + BOTTOM);
  data.plotted.forEach((i, k) => {
    x[k] = LEFT + width * toUnit(axis, axisValue(data, param.key, i));
    y[k] = TOP + HEIGHT * (1 - (data.score[i] - range[0]) / (range[1] - range[0]));
    if (k % every === 0 && y[k] <= TOP + HEIGHT && y[k] >= TOP) index.push(k);
  });
  const mark = () => { /* the chosen ones stand out */
    const {mask, colour} = selection, places = new Map(index.map((k) => [data.plotted[k], k])), chosen = [...places.keys()].filter((i) => !mask || mask[i]);
    cloud.clear();
    if (mask) cloud.draw('faint', MARKS.dot(c.dim, 0.13, 1.6), x, y, index.filter((k) => !mask[data.plotted[k]]));
    byColour(colour, chosen, mask ? c.ink : c.dim, (name, paint, list) => cloud.draw(`${name} ${!!mask}`, MARKS.dot(paint, colour || mask ? 0.8 : data.plotted.length > 500 ? 0.28 : 0.5, colour || mask ? 2.2 : 1.8), x, y, list.map((i) => places.get(i))));
  };
  mark();
  const layer = el.appendChild(document.createElement('div'));
  layer.className = 'layer';
  const labels = ticks(axis.choices ? {...axis} : axis, width < 240 ? 3 : 4);
  const band = isCategory
    ? [{type: 'rule', from: {data: 'd'}, encode: {update: {x: {scale: 'x', field: 'u'}, y: {scale: 'y', field: 'lo'}, y2: {scale: 'y', field: 'hi'}, stroke: {value: c.model}, strokeWidth: {value: 2}}}},
      {type: 'symbol', from: {data: 'd'}, encode: {update: {x: {scale: 'x', field: 'u'}, y: {scale: 'y', field: 'mean'}, fill: {value: c.model}, size: {value: 70}, shape: {value: 'diamond'}}}}]
    : [{type: 'area', from: {data: 'd'}, encode: {update: {x: {scale: 'x', field: 'u'}, y: {scale: 'y', field: 'lo'}, y2: {scale: 'y', field: 'hi'}, fill: {value: c.model}, fillOpacity: {value: 0.2}}}},
      {type: 'line', from: {data: 'd'}, encode: {update: {x: {scale: 'x', field: 'u'}, y: {scale: 'y', field: 'mean'}, stroke: {value: c.model}, strokeWidth: {value: 2}}}}];
  const here = slice.value === null || slice.value === undefined ? [] : [{u: at(slice.value)}];
  const best = points.length ? points.reduce((a, b) => ((data.maximize ? b.mean > a.mean : b.mean < a.mean) ? b : a)) : null;
  const chart = await mount(layer, {
    autosize: 'none', padding: {left: LEFT, right: RIGHT, top: TOP, bottom: BOTTOM}, height: HEIGHT, fixedWidth: width,
    data: [{name: 'd', values: points}, {name: 'here', values: here}, {name: 'ticks', values: labels}],
    scales: [{name: 'x', type: 'linear', domain: [0, 1], range: 'width'}, {name: 'y', type: 'linear', domain: range, range: 'height'}],
    axes: [{orient: 'left', scale: 'y', grid: true, domain: false, ticks: false, tickCount: 4}],
    marks: [
      {type: 'group', encode: {update: {width: {signal: 'width'}, height: {signal: 'height'}, clip: {value: true}}}, marks: [
        {type: 'rule', from: {data: 'here'}, encode: {update: {x: {scale: 'x', field: 'u'}, y: {value: 0}, y2: {signal: 'height'}, stroke: {value: c.bad}, strokeDash: {value: [4, 3]}, strokeWidth: {value: 1.3}}}},
        ...band]},
      {type: 'rule', encode: {update: {x: {value: 0}, x2: {signal: 'width'}, y: {signal: 'height'}, stroke: {value: c.axis}}}},
      {type: 'text', from: {data: 'ticks'}, encode: {update: {x: {scale: 'x', field: 'at'}, y: {signal: 'height + 16'}, text: {field: 'label'}, align: {signal: "datum.at > 0.93 ? 'right' : datum.at < 0.07 ? 'left' : 'center'"}, fontSize: {value: 11.5}}}},
    ],
  }, `${data.metric} along ${param.key}${best ? `: the model expects most, ${fmt.number(best.mean)}, near ${labels.length ? labels.reduce((a, b) => (Math.abs(b.at - best.u) < Math.abs(a.at - best.u) ? b : a)).label : ''}` : ''}`);
  const places = points.map((p) => p.u);
  followX(layer, chart.view, (u) => {
    const k = nearest(places, u), p = points[k];
    return p ? {x: p.u, parts: [h('div.tip-head', null, `${param.key.split('.').at(-1)} ${typeof slice.points[k].value === 'number' ? fmt.number(slice.points[k].value) : slice.points[k].value}`),
      tipRow(`expected ${data.metric}`, fmt.number(p.mean)), tipRow('95 %', fmt.interval(p.lo, p.hi))]} : null;
  });
  return {...chart, mark};
}
