import { expect, test } from 'vitest';
import { TomlLines } from './toml-lines.ts';

const TEXT = `# comment with [brackets] and "quotes
top = 1 # [x]
"quoted.name" = 'a # b'
a.b.c = """
[not.a.header]
key = "no"
"""
list = [
  { x = 1 }, # ]
  "]",
]

[ table . "in ner" ]
key = '''
'''''
last = "\\"]"

[[rows]]
id = 1
[[rows]]
id = 2
[rows.deep]
id = 3
`;

test('every TOML key is found at its line, in any surroundings', () => {
  const lines = new TomlLines(TEXT.replaceAll('\n', '\r\n'));
  const at = (...path: (string | number)[]): number => lines.lineOf(path);
  expect(at('top')).toBe(2);
  expect(at('quoted.name')).toBe(3);
  expect(at('a', 'b', 'c')).toBe(4);
  expect(at('not')).toBe(1);
  expect(at('list', 1)).toBe(8);
  expect(at('table', 'in ner')).toBe(13);
  expect(at('table', 'in ner', 'key')).toBe(14);
  expect(at('table', 'in ner', 'last')).toBe(16);
  expect(at('table', 'in ner', 'missing')).toBe(13);
  expect(at('rows', 0, 'id')).toBe(19);
  expect(at('rows', 1, 'id')).toBe(21);
  expect(at('rows', 1, 'deep', 'id')).toBe(23);
});
