import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { GrowingFile, LineLog, type LineLogOptions, lineOf, recordsIn, wholeLines } from './line-log.ts';

let folder: TemporaryDirectory;
let path: string;
const open: LineLog[] = [];
beforeEach(async () => {
  folder = await temporaryDirectory();
  path = join(folder.path, 'facts.jsonl');
});
afterEach(async () => {
  vi.restoreAllMocks();
  for (const log of open.splice(0)) await log.close();
  await folder.close();
});

const HEAD = lineOf({ file: 'facts' });
const isHead = ({ file }: Readonly<Record<string, unknown>>): boolean => file === 'facts';

/** Starts a line log that records a set of numbers. */
const startFacts = (options: Partial<LineLogOptions> = {}) => {
  const facts = new Set<number>();
  const onFailed = vi.fn();
  const log = new LineLog({
    path,
    maxBytes: 1 << 20,
    queueChars: 1 << 20,
    tailChars: 1 << 20,
    onFailed,
    *lines() {
      yield HEAD;
      for (const fact of facts) yield lineOf({ fact });
    },
    ...options,
  });
  open.push(log);
  const add = (fact: number): void => {
    facts.add(fact);
    log.append(lineOf({ fact }));
  };
  return { log, facts, add, onFailed };
};

const factsOnDisk = (): unknown[] => [
  ...new Set([...recordsIn(readFileSync(path, 'utf8'), isHead)].map(({ fact }) => fact)),
];

describe('a parsed line log', () => {
  it('contains only lines with a line end', () => {
    expect([...wholeLines('a\nb\nhalf')]).toEqual(['a', 'b']);
    expect([[...wholeLines('')], [...wholeLines('half')], [...wholeLines('\n')]]).toEqual([[], [], ['']]);
  });

  it('contains the records behind the header, and ignores an incomplete last record', () => {
    const text = `${HEAD}${lineOf({ fact: 1 })}${lineOf({ fact: 'ü' })}`;
    expect([...recordsIn(text, isHead)]).toEqual([{ fact: 1 }, { fact: 'ü' }]);
    for (let cut = HEAD.length; cut < text.length; cut += 1) {
      const records = [...recordsIn(text.slice(0, cut), isHead)];
      expect(records).toEqual([{ fact: 1 }, { fact: 'ü' }].slice(0, records.length));
    }
  });

  it.each([
    ['', 'the file does not have the expected header'],
    ['{"file":"fac', 'the file does not have the expected header'],
    ['{"file":"others"}\n', 'the file does not have the expected header'],
    [`${HEAD}7\n`, 'the file has a line without an object'],
    [`${HEAD}null\n`, 'the file has a line without an object'],
    [`${HEAD}\u0000\u0000\n`, 'JSON'],
    [`${HEAD}{"fact":1}{"fact":2}\n`, 'JSON'],
  ])('rejects %j', (text, reason) => {
    expect(() => [...recordsIn(text, isHead)]).toThrow(reason);
  });
});

describe('a growing file', () => {
  const lines = Array.from({ length: 5000 }, (_, index) => lineOf({ fact: index, text: 'ü'.repeat(20) }));

  it('appears complete when published, and grows afterwards', async () => {
    const file = await GrowingFile.prepare(path, lines, { flush: true });
    expect([existsSync(path), file.bytes]).toEqual([false, Buffer.byteLength(lines.join(''))]);
    await file.append(lineOf({ before: 'ü' }));
    await file.publish();
    await file.append(lineOf({ after: true }));
    expect(file.bytes).toBe(statSync(path).size);
    await file.close();
    expect(readFileSync(path, 'utf8')).toBe([...lines, lineOf({ before: 'ü' }), lineOf({ after: true })].join(''));
    expect([statSync(path).mode & 0o777, readdirSync(folder.path)]).toEqual([0o600, ['facts.jsonl']]);
  });

  it('replaces a leftover temporary file, and never writes through a symlink', async () => {
    const target = join(folder.path, 'target');
    writeFileSync(target, 'untouched');
    symlinkSync(target, `${path}.new`);
    const file = await GrowingFile.prepare(path, ['whole\n'], { flush: false });
    await file.publish();
    await file.close();
    expect([readFileSync(target, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['untouched', 'whole\n']);
  });

  it('leaves no file when its source throws or when it is discarded', async () => {
    const failing = function* (): Generator<string> {
      yield 'half\n';
      throw new Error('no more');
    };
    await expect(GrowingFile.prepare(path, failing(), { flush: false })).rejects.toThrow('no more');
    const file = await GrowingFile.prepare(path, ['whole\n'], { flush: false });
    await file.discard();
    expect(readdirSync(folder.path)).toEqual([]);
  });

  it('can be truncated and removed', async () => {
    const file = await GrowingFile.prepare(path, ['one\n'], { flush: false });
    await file.publish();
    await file.append('two\n');
    await file.cutTo(4);
    await file.append('three\n');
    expect([readFileSync(path, 'utf8'), file.bytes]).toEqual(['one\nthree\n', 10]);
    await file.remove();
    expect(readdirSync(folder.path)).toEqual([]);
  });
});

describe('a line log', () => {
  it('records every change in a file readable by its owner only', async () => {
    const { log, add } = startFacts();
    for (let fact = 0; fact < 100; fact += 1) {
      add(fact);
      if (fact % 10 === 0) await eventually(() => expect(factsOnDisk()).toContain(fact));
    }
    await log.close();
    expect(factsOnDisk()).toEqual(Array.from({ length: 100 }, (_, fact) => fact));
    expect([statSync(path).mode & 0o777, readdirSync(folder.path)]).toEqual([0o600, ['facts.jsonl']]);
  });

  it('reads back its content, or null when there is no file', async () => {
    const { log, add } = startFacts();
    expect(await log.read()).toBeNull();
    add(1);
    await log.close();
    const next = startFacts({ maxBytes: 20 });
    await expect(next.log.read()).rejects.toThrow('it has');
    expect(await startFacts().log.read()).toBe(readFileSync(path, 'utf8'));
    rmSync(path);
    mkdirSync(path);
    await expect(startFacts().log.read()).rejects.toThrow('not a regular file');
  });

  it('rewrites its file at the start, so that an incomplete line cannot precede a new one', async () => {
    writeFileSync(path, `${HEAD}{"fact":1}\n{"fac`);
    const { log, add } = startFacts();
    add(2);
    await log.close();
    expect(factsOnDisk()).toEqual([2]);
  });

  it('rewrites its file after many changes, or when too many changes wait', async () => {
    const { log, facts, add } = startFacts({ tailChars: 200, queueChars: 100 });
    for (let round = 0; round < 50; round += 1) {
      for (let fact = 0; fact < 20; fact += 1) add(fact);
      await eventually(() => expect(factsOnDisk()).toHaveLength(facts.size));
    }
    await log.close();
    expect(statSync(path).size).toBeLessThan(1000);
    expect(factsOnDisk()).toEqual([...facts]);
  });

  it('rewrites its file on request, without deleted records', async () => {
    const { log, facts, add } = startFacts();
    add(1);
    add(2);
    await eventually(() => expect(factsOnDisk()).toEqual([1, 2]));
    facts.delete(1);
    log.rewrite();
    await log.close();
    expect(factsOnDisk()).toEqual([2]);
  });

  it('reports only the first failure, and writes all changes once a write succeeds', async () => {
    const { log, add, onFailed } = startFacts();
    add(1);
    // The first write contains the changed state, and the change itself is appended behind the state.
    await eventually(() => expect(readFileSync(path, 'utf8')).toBe(HEAD + lineOf({ fact: 1 }) + lineOf({ fact: 1 })));
    const append = vi.spyOn(GrowingFile.prototype, 'append').mockRejectedValue(new Error('EIO'));
    const prepare = vi.spyOn(GrowingFile, 'prepare').mockRejectedValue(new Error('ENOSPC'));
    add(2);
    await eventually(() => expect(onFailed).toHaveBeenCalledTimes(1));
    add(3);
    await eventually(() => expect(prepare).toHaveBeenCalledTimes(1));
    append.mockRestore();
    prepare.mockRestore();
    add(4);
    await eventually(() => expect(factsOnDisk()).toEqual([1, 2, 3, 4]));
    await log.close();
    expect(onFailed.mock.calls).toEqual([['EIO']]);
  });

  it('reports a failure again after a write has succeeded', async () => {
    const { log, add, onFailed } = startFacts();
    for (const reason of ['first', 'second']) {
      const prepare = vi.spyOn(GrowingFile, 'prepare').mockRejectedValue(new Error(reason));
      log.rewrite();
      await eventually(() => expect(onFailed).toHaveBeenLastCalledWith(reason));
      prepare.mockRestore();
      add(1);
      await eventually(() => expect(factsOnDisk()).toEqual([1]));
      await eventually(() => expect(readFileSync(path, 'utf8')).toBe(HEAD + lineOf({ fact: 1 }) + lineOf({ fact: 1 })));
    }
    await log.close();
    expect(onFailed).toHaveBeenCalledTimes(2);
  });

  it('keeps a change that arrives during a failing write', async () => {
    const { log, add } = startFacts();
    let fail = (_error: Error): void => {};
    const prepare = vi.spyOn(GrowingFile, 'prepare').mockImplementationOnce(
      () =>
        new Promise((_resolve, reject) => {
          fail = reject;
        }),
    );
    add(1);
    await eventually(() => expect(prepare).toHaveBeenCalled());
    add(2);
    fail(new Error('EIO'));
    await eventually(() => expect(factsOnDisk()).toEqual([1, 2]));
    await log.close();
  });

  it('retries failed writes when it is closed', async () => {
    const { log, add, onFailed } = startFacts();
    const prepare = vi.spyOn(GrowingFile, 'prepare').mockRejectedValue(new Error('ENOSPC'));
    add(1);
    await eventually(() => expect(onFailed).toHaveBeenCalledTimes(1));
    prepare.mockRestore();
    await log.close();
    expect(factsOnDisk()).toEqual([1]);
  });

  it('reports a folder that cannot be written', async () => {
    path = join(folder.path, 'none', 'facts.jsonl');
    const { log, add, onFailed } = startFacts({ path });
    add(1);
    await log.close();
    expect(onFailed).toHaveBeenCalledWith(expect.stringContaining('ENOENT'));
  });

  it('writes all changes from before close(), and none from after', async () => {
    const { log, add } = startFacts();
    add(1);
    add(2);
    const closed = log.close();
    log.append(lineOf({ fact: 3 }));
    log.rewrite();
    await closed;
    await log.close();
    expect(factsOnDisk()).toEqual([1, 2]);
  });
});
