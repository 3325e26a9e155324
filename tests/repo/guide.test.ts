// The guide: rendering of pages, and the whole guide made from docs/. tests/system/guide.test.ts requests the pages from a server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildProgram } from '../../apps/cli/src/all-commands.ts';
import {
  COMMAND_PLACES,
  docsAddress,
  ERROR_PLACES,
  placeOfCommand,
  placeOfError,
} from '../../apps/cli/src/io/docs-links.ts';
import { makeTestIo } from '../../apps/cli/src/io/io.fixture.ts';
import { ERROR_CODES } from '../../packages/errors/src/catalogue.ts';
import { ROOT } from './checkout.fixture.ts';

interface Rendered {
  readonly title: { readonly id: string; readonly html: string };
  readonly headings: readonly { readonly depth: number; readonly id: string }[];
  readonly html: string;
  readonly ids: ReadonlySet<string>;
  readonly linked: ReadonlySet<string>;
}

interface Guide {
  readonly files: ReadonlyMap<string, Buffer>;
  readonly anchors: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Functions of JavaScript modules, which have no declarations. */
const load = async <T>(name: string): Promise<T> => (await import(join(ROOT, `scripts/lib/guide/${name}.mjs`))) as T;
const { headingSlugs } = await load<{ headingSlugs: () => (text: string) => string }>('heading-slugs');
const { renderMarkdown } = await load<{ renderMarkdown: (text: string, where: object) => Rendered }>('markdown');
const { guideFiles, pictureSize } = await load<{
  guideFiles: (docs: string, icon: string) => Guide;
  pictureSize: (bytes: Buffer) => object | null;
}>('guide-files');

const FILES = new Set(['README.md', 'page.md', 'other.md', 'recipes/steps.md', 'recipes/run.sh', 'look.svg']);
const render = (text: string, page = 'page.md'): Rendered =>
  renderMarkdown(`# Title\n\n${text}`, { page, files: FILES, sizeOf: () => ({ width: 40, height: 30 }) });

describe('anchors of headings', () => {
  it.each([
    ['Names and URLs', 'names-and-urls'],
    ['config.yml', 'configyml'],
    ['Relay or direct: every reason', 'relay-or-direct-every-reason'],
    ['1. A password for a preview', '1-a-password-for-a-preview'],
    ['What is dropped, and why', 'what-is-dropped-and-why'],
    ['dns_exec & `auth`', 'dns_exec--auth'],
    ['Größe', 'größe'],
  ])('%s has the anchor #%s, as on GitHub', (text, slug) => {
    expect(headingSlugs()(text)).toBe(slug);
  });

  it('number repeated headings, and skip a number that a heading has already', () => {
    const slugOf = headingSlugs();
    expect(['Groups', 'Groups', 'Groups 1', 'Groups'].map(slugOf)).toEqual([
      'groups',
      'groups-1',
      'groups-1-1',
      'groups-2',
    ]);
  });

  it('ignore formatting and links in a heading', () => {
    expect([...render('## Fields of `ready` in [the *API*](other.md)').ids]).toEqual([
      'title',
      'fields-of-ready-in-the-api',
    ]);
  });
});

describe('links of a page', () => {
  it.each([
    ['other.md', 'other'],
    ['other.md#a-b', 'other#a-b'],
    ['#a-b', '#a-b'],
    ['README.md', './'],
    ['recipes/steps.md', 'recipes/steps'],
    ['recipes/run.sh', 'recipes/run.sh'],
    ['https://example.com/a?b=1&c=2', 'https://example.com/a?b=1&amp;c=2'],
  ])('%s becomes %s', (href, url) => {
    expect(render(`[x](${href})`).html).toContain(`<a href="${url}">x</a>`);
  });

  it('lead up from a page in a folder', () => {
    expect(render('[a](../other.md#x) [b](../README.md) [c](run.sh)', 'recipes/steps.md').html).toContain(
      '<a href="../other#x">a</a> <a href="../">b</a> <a href="../recipes/run.sh">c</a>',
    );
  });

  it('become text if the file is not in the guide', () => {
    const { html } = render(
      'Read [the changelog](../CHANGELOG.md) and [README](../README.md). [CONTRIBUTING.md](../CONTRIBUTING.md#x) too.',
    );
    expect(html).toContain(
      '<p>Read the changelog (<code>CHANGELOG.md</code> in the source code) and README (<code>README.md</code> in the source code). <code>CONTRIBUTING.md</code> too.</p>',
    );
  });

  it.each([
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    '//example.com',
    '/etc/passwd',
    'file:///etc',
  ])('must not be %s', (href) => {
    expect(() => render(`[x](${href})`)).toThrow(/must be relative or begin with https/);
  });

  it('are not made from addresses in a text, which are examples', () => {
    expect(render('Open http://shop.localhost:8000 or mail ann@example.com.').html).not.toContain('<a');
  });
});

describe('the text of a page', () => {
  it('shows HTML as text, and leaves out comments', () => {
    const { html } = render(
      '<!-- figures -->\n\nA <b onclick="x()">b</b> & <script>alert(1)</script>\n\n<div>block</div>\n',
    );
    expect(html).not.toMatch(/<(?:b|div|script)\b|figures/);
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(html).toContain('&lt;div&gt;block&lt;/div&gt;');
  });

  it('escapes code, alternative texts and titles', () => {
    const { html } = render('`<i>&`\n\n```html\n<b>"x"</b>\n```\n\n![a "b" <c>](look.svg)\n');
    expect(html).toContain('<code>&lt;i&gt;&amp;</code>');
    expect(html).toContain('<pre tabindex="0"><code>&lt;b&gt;&quot;x&quot;&lt;/b&gt;\n</code></pre>');
    expect(html).toContain(
      '<img src="look.svg" alt="a &quot;b&quot; &lt;c&gt;" width="40" height="30" loading="lazy">',
    );
  });

  it('shows the text of a diagram, because a script would be needed to draw the diagram', () => {
    const { html } = render('```mermaid\ngraph LR; a-->b\n```\n');
    expect(html).toContain(
      '<figcaption>Diagram, in Mermaid\'s notation</figcaption><pre tabindex="0"><code>graph LR; a--&gt;b',
    );
  });

  it("leaves out a list of the page's own headings, because every page has a table of contents", () => {
    expect(render('- [A](#a)\n- [B `c`](#b-c)\n\n## A\n\n## B `c`\n').html).not.toContain('<li>');
    for (const list of ['- [A](#a)\n- [B](other.md#b)\n', '- [A](#a): first\n', '- [A](#a)\n- text\n']) {
      expect(render(`${list}\n## A\n`).html).toContain('<li><a href="#a">A</a>');
    }
  });

  it('gives rows of error codes an anchor', () => {
    const { html, ids } = render('| Code | HTTP |\n|---|--:|\n| `API_X` | 400 |\n| 3 | 5 |\n');
    expect(html).toContain('<tr id="API_X"><td><code>API_X</code></td><td class="right">400</td></tr>\n<tr><td>3</td>');
    expect(ids).toContain('API_X');
    expect(render('| Key |\n|---|\n| `API_X` |\n').html).not.toContain('<tr id=');
  });

  it('must begin with a title, and have its pictures in docs/', () => {
    expect(() => renderMarkdown('Text\n\n# Title\n', { page: 'page.md', files: FILES })).toThrow(
      /begins with its title/,
    );
    expect(() => render('![x](../look.png)')).toThrow(/not in docs/);
    expect(() => render('![x](https://example.com/x.png)')).toThrow(/not in docs/);
  });
});

describe('the guide', () => {
  const guide = guideFiles(join(ROOT, 'docs'), join(ROOT, 'apps/dashboard/public/favicon.svg'));
  const pages = [...guide.anchors.keys()].map((address) => [address || 'index', address] as const);
  const htmlOf = (address: string): string => String(guide.files.get(`${address || 'index'}.html`));
  const BASE = 'http://localhost/docs/guide/';
  const isDead = (url: URL): boolean => {
    if (url.host !== 'localhost') return url.protocol !== 'https:';
    // The API reference and the dashboard.
    if (['/docs', '/app/'].includes(url.pathname)) return false;
    const address = `${url.origin}${url.pathname}`.replace(BASE, '');
    const anchors = guide.anchors.get(address);
    const anchor = decodeURIComponent(url.hash.slice(1));
    if (anchor === '' || anchors === undefined) return anchors === undefined && !guide.files.has(address);
    return !anchors.has(anchor) && !(anchor.startsWith('_') && htmlOf(address).includes(` id="${anchor}"`));
  };

  it('has a page for every file of docs/, and the list of pages on each', () => {
    expect(pages.length).toBeGreaterThan(38);
    for (const [, address] of pages) {
      const list = /<nav class="pages"[\s\S]*<\/nav>/.exec(htmlOf(address))?.[0] ?? '';
      expect([...list.matchAll(/<li>/g)].length, address).toBe(pages.length + 1);
      expect([...list.matchAll(/aria-current="page"/g)].length, address).toBe(1);
    }
    expect(htmlOf('')).not.toContain('<p>More</p>');
  });

  it.each(pages)('%s has a title, a table of contents, and only links and anchors that are alive', (_, address) => {
    const html = htmlOf(address);
    expect(html).toMatch(/<h1 id="[^"]+">.+<\/h1>\n<nav class="contents"/);
    const targets = [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, target = '']) => target);
    expect(targets.filter((target) => isDead(new URL(target, `${BASE}${address}`)))).toEqual([]);
  });

  it.each(pages)('%s contains no script, no inline style, and nothing from another host', (_, address) => {
    const html = htmlOf(address);
    expect(html).not.toMatch(/<script|javascript:|<style|<iframe|<object|<embed|<form| style="| on\w+="/i);
    expect(html).not.toMatch(/ src="(?:https?:|\/\/)|<link[^>]* href="(?:https?:|\/\/)/);
    const ids = [...html.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids.length).toBe(new Set(ids).size);
  });

  it('has a style sheet and pictures without foreign content', () => {
    const texts = [...guide.files].filter(([path]) => /\.(?:css|svg)$/.test(path));
    expect(texts.length).toBeGreaterThan(3);
    for (const [path, bytes] of texts) {
      expect(bytes.toString(), path).not.toMatch(
        /<script|url\(|@import| (?:xlink:)?href=|<foreignObject|<image| on\w+="/i,
      );
    }
  });

  it('knows the size of every picture', () => {
    for (const [path, bytes] of guide.files)
      if (/\.png$|^[^/]*\.svg$/.test(path)) expect(pictureSize(bytes), path).not.toBeNull();
    expect(pictureSize(Buffer.from('<svg xmlns="x" viewBox="0 0 860 934">'))).toEqual({ width: 860, height: 934 });
  });

  describe('explains', () => {
    const program = buildProgram(makeTestIo({ home: '/nowhere' }), () => {});
    type Command = Awaited<typeof program>;
    const pathsOf = (command: Command, path: string): string[] => [
      path,
      ...command.commands.flatMap((below) => pathsOf(below, `${path} ${below.name()}`)),
    ];
    const isAlive = (place: string): boolean => {
      const [page = '', heading] = docsAddress(place, 'http://localhost')
        .slice('http://localhost/docs/guide/'.length)
        .split('#');
      const anchors = guide.anchors.get(page);
      return anchors !== undefined && (heading === undefined || anchors.has(heading));
    };

    it('every command, at a page and heading that exist', async () => {
      const paths = pathsOf(await program, 'tunnel');
      expect(paths.length).toBeGreaterThan(40);
      expect(paths.filter((path) => !isAlive(placeOfCommand(path)))).toEqual([]);
      // Only the program itself has a page without a heading. Commands directly below have entries.
      const direct = paths.filter((path) => path.split(' ').length === 2 && path !== 'tunnel help');
      expect(direct.filter((path) => !COMMAND_PLACES[path]?.includes('#'))).toEqual([]);
      expect(Object.keys(COMMAND_PLACES).filter((path) => !paths.includes(path))).toEqual([]);
    });

    it('every error, at a page and heading that exist', () => {
      expect(ERROR_CODES.filter((code) => !isAlive(placeOfError(code)))).toEqual([]);
      const unused = Object.keys(ERROR_PLACES).filter(
        (beginning) => !ERROR_CODES.some((code) => `${code}_`.startsWith(`${beginning}_`)),
      );
      expect(unused).toEqual([]);
    });

    it('the pages that texts of the catalogue name', () => {
      const named = [
        ...readFileSync(join(ROOT, 'packages/errors/src/catalogue.ts'), 'utf8').matchAll(
          /\bdocs\/([\w-]+\.md(?:#[\w-]+)?)/g,
        ),
      ];
      expect(named.length).toBeGreaterThan(3);
      expect(named.map(([, place = '']) => place).filter((place) => place !== 'x.md' && !isAlive(place))).toEqual([]);
    });
  });
});
