/* importance.js - share of variance that each parameter explains alone: filled bars for the score, outlines for the cost. */
import {h} from '../dom.js';
import * as fmt from '../format.js';
import {itemTip, tipRow} from './hover.js';
import {colors, mount} from './vega.js';

const ROW = 38;

export function showImportance(el, insight, metric) {
  const c = colors(), narrow = el.clientWidth < 480;
  const values = insight.params.flatMap((p) => [
    {key: p.key, what: metric, effect: p.score.effect, lo: Math.max(0, p.score.effect - 2 * p.score.effect_sd), hi: Math.min(1, p.score.effect + 2 * p.score.effect_sd), offset: 0},
    {key: p.key, what: 'cost', effect: p.cost.effect, lo: Math.max(0, p.cost.effect - 2 * p.cost.effect_sd), hi: Math.min(1, p.cost.effect + 2 * p.cost.effect_sd), offset: 13}]);
  const order = [...insight.params].sort((a, b) => b.score.effect - a.score.effect).map((p) => p.key);
  const top = {signal: "scale('y', datum.key) + 7 + datum.offset"}, middle = {signal: "scale('y', datum.key) + 12 + datum.offset"};
  const isScore = `datum.what === ${JSON.stringify(metric)} && datum.offset === 0`;
  return mount(el, {
    tooltip: itemTip(el, (d) => [h('div.tip-head', null, d.key), tipRow(d.what, fmt.percent(d.effect)), tipRow('within', `${fmt.percent(d.lo)} to ${fmt.percent(d.hi)}`)]),
    height: order.length * ROW,
    data: [{name: 'd', values}],
    scales: [
      {name: 'x', type: 'linear', domain: [0, Math.max(0.2, ...values.map((v) => v.hi))], range: 'width', nice: true},
      {name: 'y', type: 'band', domain: order, range: 'height'}],
    axes: [
      {orient: 'bottom', scale: 'x', grid: true, domain: false, tickCount: 5, format: '.0%'},
      {orient: 'left', scale: 'y', domain: false, ticks: false, labelLimit: narrow ? 130 : 220}],
    marks: [
      {type: 'rect', from: {data: 'd'}, encode: {update: {x: {scale: 'x', value: 0}, x2: {scale: 'x', field: 'effect'}, y: top, height: {value: 10},
        fill: [{test: isScore, value: c.main}, {value: 'transparent'}], stroke: [{test: isScore, value: c.main}, {value: c.dim}], strokeWidth: {value: 1.3}, tooltip: {signal: 'datum'}}}},
      {type: 'rule', from: {data: 'd'}, encode: {update: {x: {scale: 'x', field: 'lo'}, x2: {scale: 'x', field: 'hi'}, y: middle, stroke: {value: c.ink}, strokeWidth: {value: 1.2}}}},
    ],
  }, `Importance for ${metric} and cost: ${insight.params.map((p) => `${p.key} ${Math.round(p.score.effect * 100)} % and ${Math.round(p.cost.effect * 100)} %`).join(', ')}`);
}
