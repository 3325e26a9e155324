// How the coverage comparison names a branch and finds the branch again in changed code.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Branch {
  readonly id: string;
  readonly text: string;
}

const { branchesOf } = (await import(join(ROOT, 'scripts/lib/coverage/branches.mjs'))) as {
  branchesOf: (file: string, source: string) => Branch[];
};
const { compareRecords } = (await import(join(ROOT, 'scripts/lib/coverage/compare.mjs'))) as {
  compareRecords: (old: object, now: object) => { lost: Branch[]; open: Branch[] };
};

const SOURCE = `export class Door {
  open(key: Key): boolean {
    if (key.isOld) return false;
    return key.fits || (this.#isWide ? true : false);
  }
}`;

const texts = (branches: readonly Branch[]): string[] => branches.map(({ text }) => text);

const record = (file: string, source: string, isCovered: (text: string) => boolean): object => ({
  branches: branchesOf(file, source).map((branch) => ({ ...branch, file, covered: isCovered(branch.text), tests: [] })),
});

it('the branches of a file are its functions, both sides of conditions and both sides of logical operators', () => {
  expect(texts(branchesOf('door.ts', SOURCE))).toEqual([
    'Door.open: function',
    'Door.open: if key.isOld',
    'Door.open: else key.isOld',
    'Door.open: right of || key.fits || (this.#isWide ? true : false)',
    'Door.open: left of || key.fits || (this.#isWide ? true : false)',
    'Door.open: ? this.#isWide',
    'Door.open: : this.#isWide',
  ]);
});

it('a branch is recognized after its lines and its file have moved, and is reported as lost if no test covers it', () => {
  const moved = `// A door.\n\nconst more = 1;\n${SOURCE.replace('if (key.isOld)', 'if (\n key.isOld /* rust */)')}`;
  const old = record('src/door.ts', SOURCE, () => true);
  const now = record('src/rooms/door.ts', moved, (text) => text !== 'Door.open: if key.isOld');
  const { lost, open } = compareRecords(old, now);
  expect(texts(lost)).toEqual(['Door.open: if key.isOld']);
  expect(open).toEqual([]);
});

it('removed branches are ignored, and new branches without a test are reported', () => {
  const old = record('door.ts', SOURCE, () => true);
  const now = record('door.ts', SOURCE.replace('key.isOld', 'key.isLost'), (text) => !text.includes('isLost'));
  const { lost, open } = compareRecords(old, now);
  expect(lost).toEqual([]);
  expect(texts(open)).toEqual(['Door.open: if key.isLost', 'Door.open: else key.isLost']);
});
