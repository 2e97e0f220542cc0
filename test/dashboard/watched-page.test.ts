/** The watching itself: a page that does what must not be done fails its test (S12). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { until } from '../support/postgres-store.ts';
import { noBrowser, openBrowser } from './browser.ts';
import { xss } from './names.ts';
import { onPage } from './watched-page.ts';

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'";

/** Each page does one thing that is not allowed; the pattern is the complaint that it must cause. */
const pages: readonly (readonly [what: string, html: string, script: string, complaint: RegExp])[] =
  [
    ['an inline script', '<script>1</script>', '', /CSP: script-src-elem/],
    ['an inline style', '<p style="color:red">x</p>', '', /CSP: style-src-attr/],
    [
      'an image of another host',
      '<img src="https://tracker.example/x.png">',
      '',
      /request to https/,
    ],
    ['an error of a script', '', 'throw new Error("broken")', /page error: Error: broken/],
    [
      'a rejection that nobody handles',
      '',
      'Promise.reject(new Error("lost"))',
      /page error: Error: lost/,
    ],
    ['an error on the console', '', 'console.error("bad")', /console error: bad/],
    ['a warning on the console', '', 'console.warn("odd")', /console warning: odd/],
    ['text that is run', '', "pwned('here')", /XSS: here/],
    ['a dialog', '', 'alert(1)', /dialog: 1/],
    ['eval', '', 'try { eval("1") } catch {}', /CSP: script-src/],
  ];

const browser = await openBrowser();
if (browser === undefined) test(noBrowser, () => undefined);
else {
  describe('S12 watched pages', { timeout: 900_000 }, () => {
    let server: Server;
    let home = '';
    before(async () => {
      server = createServer((request, response) => {
        const [, index, kind] = (request.url ?? '').split('/');
        const [, html, script] = pages[Number(index)] ?? ['', '<p>nothing</p>', ''];
        response.writeHead(200, {
          'content-type': kind === 'script.js' ? 'text/javascript' : 'text/html; charset=utf-8',
          // Markup of the corpus is run here, so that it is known to be able to.
          ...(kind === 'open' ? {} : { 'content-security-policy': policy }),
        });
        const head = '<!doctype html><link rel="icon" href="data:,">';
        if (kind === 'script.js') response.end(script);
        else if (kind === 'open') response.end(head + decodeURIComponent(String(index)));
        else response.end(`${head}${html}<script src="/${index}/script.js"></script>`);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const address = server.address();
      assert.ok(typeof address === 'object' && address !== null);
      home = `http://127.0.0.1:${address.port}`;
    });
    after(async () => {
      await browser.close();
      server.closeAllConnections();
      server.close();
    });

    for (const [index, [what, , , complaint]] of pages.entries()) {
      test(`${what} fails the test`, async () => {
        let problems: readonly string[] = [];
        const seen = onPage(browser, home, {}, async (page, watched) => {
          problems = watched.problems;
          await page.goto(`${home}/${index}/`);
          await until(() => problems.some((each) => complaint.test(each)), 'the page complains');
        });
        await assert.rejects(seen, /complains of nothing/);
        assert.match(problems.join('\n'), complaint);
      });
    }

    test('a page that does nothing of it passes', async () => {
      await onPage(browser, home, {}, async (page) => {
        await page.goto(`${home}/none/`);
      });
    });

    test('the corpus is dangerous: taken for markup it runs', async () => {
      let problems: readonly string[] = [];
      const markup = xss('corpus').filter((text) => /onerror|onload|script>/.test(text));
      await assert.rejects(
        onPage(browser, home, {}, async (page, watched) => {
          problems = watched.problems;
          for (const text of markup) {
            const before = problems.length;
            await page.goto(`${home}/${encodeURIComponent(text)}/open`);
            await until(() => problems.length > before, 'the markup runs');
          }
        }),
      );
      for (const kind of ['img', 'svg', 'script', 'frame']) {
        assert.match(problems.join('\n'), new RegExp(`XSS: corpus-${kind}`));
      }
    });
  });
}
