// Product texts are plain English: the definition of a text, the habits to avoid, and the figures of each page and workspace.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Text {
  readonly line: number;
  readonly text: string;
}

interface FoundText extends Text {
  readonly area: string;
  readonly file: string;
}

const { figuresByArea, habitsOf, PATTERNS, textComplaints, textsOf, textsOfPage, textsOfSource } = (await import(
  join(ROOT, 'scripts/lib/text-style.mjs')
)) as {
  figuresByArea: (texts: readonly FoundText[]) => Map<string, { count: number; pronouns: number; banned: number }>;
  habitsOf: (text: string) => string[];
  PATTERNS: readonly (readonly [pattern: RegExp, instead: string])[];
  textComplaints: (texts: readonly FoundText[]) => string[];
  textsOf: (root: string) => FoundText[];
  textsOfPage: (source: string) => Text[];
  textsOfSource: (file: string, source: string) => Text[];
};

const found = (area: string, ...texts: readonly string[]): FoundText[] =>
  texts.map((text, index) => ({ area, file: `${area}/a.ts`, line: index + 1, text }));

it('every text of the product is within the style limits', () => {
  const texts = textsOf(ROOT);
  expect(texts.length).toBeGreaterThan(5000);
  expect(textComplaints(texts).join('\n')).toBe('');
});

it('a page has a text for each paragraph, list entry, heading and table cell, but not for code blocks and short texts', () => {
  const page = [
    '# Share a local service',
    '',
    'The first line of a paragraph,',
    'and its **second** line with a [link](http.md#names).',
    '',
    '1. Run the first command:',
    '',
    '   ```sh',
    '   tunnel http 3000 # nobody reads code here',
    '   ```',
    '',
    '- an entry of a list',
    '  on two lines',
    '',
    '| Key | Meaning of the key |',
    '|---|---|',
    '| `a` | one \\| two are the same |',
    '',
    '[![A picture of the page](a.png)](b.md)',
    '<br>',
    'Two words',
  ].join('\n');
  expect(textsOfPage(page)).toEqual([
    { line: 1, text: 'Share a local service' },
    { line: 3, text: 'The first line of a paragraph, and its second line with a link.' },
    { line: 6, text: 'Run the first command:' },
    { line: 12, text: 'an entry of a list on two lines' },
    { line: 15, text: 'Meaning of the key' },
    { line: 17, text: 'one \\| two are the same' },
    { line: 19, text: 'A picture of the page' },
  ]);
});

it('a source file has a text for each string of three words; joined strings are a single text, and values become {}', () => {
  const source = [
    "import a from 'some words of a module';",
    "type Name = 'words of a type';",
    "const short = 'two words';",
    "const long = 'three plain words';",
    'const filled = `the port ${a} is taken`;',
    "const joined = 'the first half ' + 'and the second half';",
    "const sql = 'select id from users where id = 1';",
    'const tagged = sql`select all words here`;',
    '// A comment is no text.',
  ].join('\n');
  expect(textsOfSource('a.ts', source)).toEqual([
    { line: 4, text: 'three plain words' },
    { line: 5, text: 'the port {} is taken' },
    { line: 6, text: 'the first half and the second half' },
  ]);
});

it('a page element is a single text together with its inline elements; class names are not texts', () => {
  const source = [
    'const page = (',
    '  <div className="one two three words">',
    '    <p>',
    '      Run <code>tunnel http</code> on {host} <b>right now</b>.',
    '    </p>',
    '    <Field label="name of the computer" />',
    '  </div>',
    ');',
  ].join('\n');
  expect(textsOfSource('a.tsx', source)).toEqual([
    { line: 3, text: 'Run `code` on {} right now.' },
    { line: 6, text: 'name of the computer' },
  ]);
});

/** Examples for each habit in the order of PATTERNS: texts with the habit, and texts that only look similar. */
const HABITS: readonly (readonly [bad: readonly string[], fine: readonly string[]])[] = [
  [
    ['Certificates are renewed by themselves.', 'The client returns by itself'],
    ['Sort the rows by their own names.', 'Pass it itself'],
  ],
  [
    ['a domain of your own', 'It has a port of its own.'],
    ['your own domain', 'the domain of your owner'],
  ],
  [
    ['Whoever has the address comes in.', 'nobody else'],
    ['Anyone with the URL can visit.', 'the body of the request'],
  ],
  [['The file is made anew.'], ['a new file', 'renew the certificate']],
  [['It is kept for good.'], ['for goods and services', 'a good reason']],
  [
    ['The key is sent in clear.', 'It begins in earnest'],
    ['in clearer words', 'The list is clear.'],
  ],
  [
    ['Wait until the session is over.', 'when they are over'],
    ['It is over 10 MB.', 'carried over, too'],
  ],
  [
    ['The name leads to this server.', 'a domain that leads here'],
    ['The name points to this server.', 'a leading slash'],
  ],
  [
    ['Tunnels go on.', 'The client goes on without it'],
    ['This part goes on the left.', 'go to a page'],
  ],
  [
    ['The operator is told.', 'an event that tells of it'],
    ['The operator is notified.', 'tell the operator'],
  ],
  [
    ['Visitors read 502.', 'The visitor reads a 404'],
    ['Visitors get a 502.', 'reads 5021 bytes'],
  ],
  [
    ['That is seldom meant.', 'the state of before'],
    ['That is rarely intended.', 'the state before the change'],
  ],
  [
    ['See what becomes of it.', 'An order comes to be.'],
    ['It becomes official.', 'It comes to 10 MB.'],
  ],
  [
    ['For this machine alone.', 'An edge (one alone) runs', 'It stands alone'],
    ['Only for this machine.', 'stand-alone programs run'],
  ],
  [
    ['What guards it is shown.', 'It is live: Who is refused sees a page.'],
    ['What is shown?', 'The rule that guards it is shown.', 'Tunnels and what they have'],
  ],
];

it('every habit has examples', () => {
  expect(HABITS).toHaveLength(PATTERNS.length);
});

it.each(PATTERNS.map(([, instead], index) => [instead, index] as const))(
  'the phrases of a habit are reported with the advice: write %s',
  (instead, index) => {
    const [bad = [], fine = []] = HABITS[index] ?? [];
    for (const text of bad) {
      expect(habitsOf(text), text).toContainEqual(expect.stringMatching(/^".+" → /));
      expect(habitsOf(text).join('\n'), text).toContain(` → ${instead}`);
    }
    for (const text of fine) expect(habitsOf(text).join('\n'), text).not.toContain(` → ${instead}`);
  },
);

it('code in backticks has no habits', () => {
  expect(habitsOf('The flag `--by itself` is code.')).toEqual([]);
});

it('a text style complaint has the place of a habit, and the figure of an area over its limit', () => {
  const texts = [
    ...found('apps/a', 'It is what they all have.'),
    ...found('apps/b', 'Plain words are here.', 'The file is made anew.'),
  ];
  expect(figuresByArea(texts).get('apps/b')).toEqual({ count: 2, pronouns: 0, banned: 50 });
  expect(textComplaints(texts)).toEqual([
    'apps/b/a.ts:2: "anew" → again; recreated',
    expect.stringMatching(/^apps\/a: pronouns \d+\.\d %, at most 7 %$/),
    'apps/b: banned 50.0 %, at most 1 %',
  ]);
  expect(textComplaints(found('apps/c', 'Plain words are here.'))).toEqual([]);
});
