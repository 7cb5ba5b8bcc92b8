/* controls.js - the buttons that steer a sweep, shown by a server that was started with --control.
 *
 * They stay the same elements while the page follows the sweep: focus and typed numbers are kept. A button without effect in
 * the study's state is disabled. say(text, bad) shows the outcome or the refusal. */
import {post, studyPath} from './api.js';
import {h} from './dom.js';

/* Asks in the page; resolves to true only for the confirming button; Escape and Cancel give false. */
function ask(question, more, label) {
  return new Promise((resolve) => {
    const yes = h('button.danger', {type: 'submit', value: 'yes'}, label);
    const box = h('dialog', {'aria-labelledby': 'ask-title'}, h('form', {method: 'dialog'}, h('h2', {id: 'ask-title'}, question), h('p.soft', null, more),
      h('div.row', null, h('button', {type: 'submit', value: 'no', autofocus: true}, 'Cancel'), yes)));
    box.addEventListener('close', () => { box.remove(); resolve(box.returnValue === 'yes'); });
    document.body.append(box);
    box.showModal();
  });
}

/* Sends actions on a study; null where the server was started without --control. busy(action or null): its answer is awaited, and
 * a double click sends it once. */
export function actor(name, version, say, busy = () => {}) {
  if (!version.control) return null;
  let now = null;
  return async (body) => {
    if (now === body.action) return;
    busy(now = body.action);
    try {
      say((await post(studyPath(name, '/control'), body, version.csrf)).message);
    } catch (problem) {
      say([problem.message, problem.hint].filter(Boolean).join('. '), true);
    } finally {
      busy(now = null);
    }
  };
}

export function controls(data, version, say) {
  let busy = null;
  const act = actor(data.name, version, say, (action) => { busy = action; update(); });
  if (!act) return null;
  const button = (label, title, onclick) => h('button.small', {type: 'button', title, onclick}, label);
  const pause = button('Pause', 'start no new trial; running ones continue', () => act({action: 'pause'}));
  const go = button('Continue', 'start trials again', () => act({action: 'continue'}));
  const stop = button('Stop…', 'end the sweep; it can be resumed', async () => {
    const running = data.study.counts.running;
    if (await ask(`Stop the sweep of ${data.name}?`, `${running ? `${running} running ${running === 1 ? 'trial ends' : 'trials end'} now. ` : ''}What is done is kept, and trawl sweep --resume continues later.`, 'Stop the sweep')) act({action: 'stop'});
  });
  /* More trials or more time, of whichever the study has a limit. */
  const count = h('input', {type: 'number', min: '1', max: '100000', step: '1', value: '20', 'aria-label': 'how much to add'});
  const units = [['trials', 'trials'], ['60', 'minutes'], ['3600', 'hours']].map(([value, text]) => h('option', {value}, text));
  const unit = h('select', {'aria-label': 'of what'}, units);
  const add = h('form.add', {onsubmit: (event) => { event.preventDefault(); act(unit.value === 'trials' ? {action: 'add', trials: Number(count.value)} : {action: 'add', budget_s: Number(count.value) * Number(unit.value)}); }},
    h('button.small', {type: 'submit', title: 'raise the limit of trials or the budget'}, 'Add'), count, unit);
  const rank = h('input', {type: 'number', min: '1', max: '100', step: '1', 'aria-label': 'priority among the studies of the controller'});
  const order = h('form.add', {onsubmit: (event) => { event.preventDefault(); act({action: 'priority', priority: Number(rank.value)}); }},
    h('button.small', {type: 'submit', title: 'its share of the devices where a controller serves several studies'}, 'Priority'), rank);
  const el = h('div.controls', {role: 'group', 'aria-label': 'control of the sweep'}, pause, go, stop, add, order);

  let shown = null;
  function update() {
    const state = data.study.state, over = state === 'ended';
    pause.hidden = state === 'paused';
    go.hidden = state !== 'paused';
    /* while an answer is awaited no button is disabled: it would lose the focus */
    const limit = {trials: data.study.trials_max > 0, time: data.study.budget_s > 0};
    units[0].disabled = !limit.trials;
    units[1].disabled = units[2].disabled = !limit.time;
    if (unit.selectedOptions[0]?.disabled) unit.value = limit.trials ? 'trials' : '60';
    if (shown !== data.study.priority) rank.value = shown = data.study.priority; // not what is being typed
    for (const [b, off] of [[pause, over], [go, false], [stop, over || state === 'idle'], [add.firstChild, !limit.trials && !limit.time]]) b.disabled = off;
    el.setAttribute('aria-busy', String(busy !== null));
  }
  update();
  return {el, update, act};
}
