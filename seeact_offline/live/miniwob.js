// Begins a page of MiniWoB++, and reads its goal and its reward.
([name, ...given]) => ({
  begin: (seed, most) => {
    const query = document.getElementById('query'), goal = document.createDocumentFragment();
    const people = ['reward-display', 'click-canvas', 'sync-task-cover'].map((id) => document.getElementById(id));
    const hide = () => {
      core.clearTimer();
      document.body.removeEventListener('click', core.canvasDrawClick);
      goal.append(...query.childNodes);
      for (const part of people) part.remove();
    };
    // the pages' own functions look for these parts
    const shown = (own) => (...given) => {
      query.replaceChildren(goal);
      document.body.append(...people);
      try { return own.apply(core, given); } finally { hide(); }
    };
    for (const name of ['getUtterance', 'startEpisodeReal', 'endEpisode']) core[name] = shown(core[name]);
    hide();
    Math.seedrandom(seed);
    core.EPISODE_MAX_TIME = most;
    core.startEpisodeReal();
    core.isBegun = true;
  },
  goal: () => {
    const goal = core.getUtterance();
    return String(goal.utterance ?? goal).replace(/\s+/g, ' ').trim();
  },
  // null before the page has begun
  reward: () => window.core?.isBegun ? [Number(WOB_RAW_REWARD_GLOBAL), Boolean(WOB_DONE_GLOBAL)] : null,
})[name](...given)
