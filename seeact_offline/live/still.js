// Waits until the page has changed nothing for 100 ms, at most three seconds: jQuery's and Raphael's animations last up to 1.5.
() => new Promise((done) => {
  let timer = setTimeout(finish, 100);
  const most = setTimeout(finish, 3000);
  const watch = new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(finish, 100); });
  watch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  function finish() { clearTimeout(timer); clearTimeout(most); watch.disconnect(); done(); }
})
