// Log lines that visitors can cause must go through LogLimiter. In the parts of the edge that visitors reach, only the listed lines are
// written without the limiter.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

const REACHED = ['ingress', 'control', 'alerts', 'routing', 'upstream', 'capture'];

/** Texts of lines that are written without the limiter, and why visitors cannot cause many of them. */
const ALLOWED: Readonly<Record<string, string>> = {
  'alert webhooks to private addresses': 'once, when the edge starts',
  'endpoints of the previous run are held for their clients': 'once, when the edge starts',
  'cannot read the endpoint file; no names or ports are held for clients': 'once, when the edge starts',
  'cannot write the endpoint file; after a crash, clients may lose their names and ports':
    'once for each failure of the disk',
  'UDP ports for datagrams and peers opened': 'once, when the edge starts',
  'udp_port_range has no two free ports besides the tunnel ports, so datagrams use carriers and peers use the relay; set [udp] ports or widen the range':
    'once, when the edge starts',
  'receive buffer of UDP ports': 'once, with the first udp tunnel',
  'connections did not finish in time': 'once, when the edge stops',
};

/** Matches a call on an object named logger, with a fixed or computed method name, up to the end of its arguments. */
const DIRECT = /\blogger\??(?:\.(?:trace|debug|info|warn|error|fatal)|\[[^\]]+\])\(([\s\S]*?)\);/g;
/** Matches a logger that gets a different name, which would hide its calls from this test. */
const RENAMED = /([\w#]+)\s*=\s*[\w.#]*\blogger\s*[;,]|\blogger\s*:\s*([a-z]\w*)\s*[,}]/g;

const sources = (): { path: string; text: string }[] =>
  REACHED.flatMap((folder) =>
    readdirSync(join(ROOT, 'apps/edge/src', folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/\.(?:test|fixture|conformance)\.ts$/.test(name))
      .map((name) => join('apps/edge/src', folder, name)),
  ).map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const textOf = (call: string): string => /'([^']+)'\s*,?\s*$/.exec(call)?.[1] ?? call;

it('only log lines that visitors cannot cause are written without the limiter', () => {
  const found = sources().flatMap(({ path, text }) =>
    [...text.matchAll(DIRECT)].map((match) => ({ path, line: textOf(match[1] ?? '') })),
  );
  expect(found.filter(({ line }) => !(line in ALLOWED))).toEqual([]);
  // The list must not contain lines that no longer exist.
  expect(new Set(found.map(({ line }) => line))).toEqual(new Set(Object.keys(ALLOWED)));
});

const renamedIn = (text: string): string[] =>
  [...text.matchAll(RENAMED)].map((match) => match[1] ?? match[2] ?? '').filter((name) => !/^#?logger$/.test(name));

it('a logger keeps the name `logger`, so that its calls can be found', () => {
  expect(sources().flatMap(({ path, text }) => renamedIn(text).map((name) => `${path}: ${name}`))).toEqual([]);
  expect(renamedIn('const log = this.#given.logger;')).toEqual(['log']);
  expect(renamedIn('const { logger: say } = options;')).toEqual(['say']);
  expect(renamedIn('this.#logger = options.logger;')).toEqual([]);
});

it('logger calls of every form are found', () => {
  const call = (text: string): string[] => [...text.matchAll(DIRECT)].map((match) => textOf(match[1] ?? ''));
  expect(call("this.#logger.warn({ a: 1 }, 'one');")).toEqual(['one']);
  expect(call("logger[level](\n  { a: 1 },\n  'two',\n);")).toEqual(['two']);
  expect(call("this.#given.logger.info(fieldsOf(group), 'three');")).toEqual(['three']);
  expect(call("this.#log.log('warn', 'key', {}, 'four');")).toEqual([]);
});
