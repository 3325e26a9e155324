// Adds a single row to the table of tunnel options and checks that config.yml, flags, help, completion, the agent's JSON, the library,
// reloads and the docs support the new option.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';
import type * as Sources from './trial-option.fixture.ts';

const TRIAL_ROW = `
  trial_mode: {
    protos: ['http'],
    schema: () => oneOf(['careful', 'bold']).default('careful'),
    reload: 'retarget',
    flag: {
      shown: '<mode>',
      value: { kind: 'choice', values: ['careful', 'bold'] },
      help: 'How the trial is run',
      heading: 'service',
    },
    docs: { type: '\`careful\`, \`bold\`', meaning: 'HTTP: how the trial is run' },
  },`;

const TABLE = 'export const PUBLIC_OPTIONS = rows({';

/** Builds a copy of the sources with the additional row. The modules of this process are shared by all tests and stay unchanged. */
const sourcesWithTrialRow = async (): Promise<typeof Sources> => {
  const outfile = join(ROOT, '.cache/tools/trial-option.mjs');
  mkdirSync(join(ROOT, '.cache/tools'), { recursive: true });
  await build({
    absWorkingDir: ROOT,
    entryPoints: [join(ROOT, 'tests/repo/trial-option.fixture.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    logLevel: 'warning',
    external: ['vitest'],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
    plugins: [
      {
        name: 'trial row',
        setup: ({ onLoad }) =>
          onLoad({ filter: /tunnel-spec\/src\/rows\/public-options\.ts$/ }, ({ path }) => {
            const text = readFileSync(path, 'utf8');
            expect(text).toContain(TABLE);
            return { contents: text.replace(TABLE, TABLE + TRIAL_ROW), loader: 'ts' };
          }),
      },
    ],
  });
  return (await import(/* @vite-ignore */ pathToFileURL(outfile).href)) as typeof Sources;
};

const sources = await sourcesWithTrialRow();
const {
  specFromWire,
  specToWire,
  buildProgram,
  run,
  commandWords,
  describeTunnel,
  planTunnels: planOf,
  entryOfFlags,
} = sources;
const { makeTestIo, tunnelFields, loadClientConfig, libraryTunnelOf, planReload, specOfLibrary, render } = sources;

const io = makeTestIo({ home: '/nowhere' });
const load = (entry: string) =>
  loadClientConfig({ file: 'config.yml', text: `tunnels:\n  shop: ${entry}`, env: {}, home: '/nowhere' });
const specOf = (entry: string) => {
  const [spec] = planOf(Object.entries(load(entry).tunnels), io).tunnels;
  if (spec === undefined) throw new Error('there is no tunnel');
  return { ...spec, name: 'shop' };
};
const BOLD = '{ proto: http, local_port: 1, trial_mode: bold }';

describe('a tunnel option that is added as a row of the option table', () => {
  it('is a key of config.yml with a default, errors at the line of the entry, and a suggestion for typos', () => {
    expect(load(BOLD).tunnels['shop']).toMatchObject({ trial_mode: 'bold' });
    expect(load('{ proto: http, local_port: 1 }').tunnels['shop']).toMatchObject({ trial_mode: 'careful' });
    const refused = [
      [
        '{ proto: http, local_port: 1, trial_mode: wild }',
        '`tunnels.shop.trial_mode` must be one of "careful", "bold"',
      ],
      ['{ proto: tcp, local_port: 1, trial_mode: bold }', 'left out unless `proto` is "http"'],
      ['{ proto: http, local_port: 1, trial_mod: bold }', 'did you mean `trial_mode`?'],
    ] as const;
    for (const [entry, words] of refused) {
      expect(() => load(entry)).toThrow(words);
      expect(() => load(entry)).toThrow('config.yml:2');
    }
  });

  it('is a flag of the commands of its protocol, in their help and in shell completion', async () => {
    expect(entryOfFlags('http', { trialMode: 'bold' }, io)).toEqual({ trial_mode: 'bold' });
    const described = describeTunnel('http', { port: 3000 }, { trialMode: 'bold' } as object, io);
    expect(described.spec).toMatchObject({ trial_mode: 'bold' });
    expect(described.entry()).toEqual({ proto: 'http', local_port: 3000, trial_mode: 'bold' });
    for (const [command, isThere] of [
      ['http', true],
      ['tcp', false],
    ] as const) {
      const shown = makeTestIo({ home: '/nowhere' });
      await run([command, '--help'], shown);
      expect(shown.out().includes('--trial-mode <mode>')).toBe(isThere);
    }
    const words = commandWords(await buildProgram(io, () => {}));
    for (const path of ['http', 'add http']) {
      const flags = words.find((word) => word.path === path)?.flags;
      expect(flags).toContainEqual(expect.objectContaining({ text: '--trial-mode', values: ['careful', 'bold'] }));
    }
  });

  it('is sent to a running client, which rejects invalid values', async () => {
    const json: unknown = JSON.parse(JSON.stringify(await specToWire(specOf(BOLD))));
    expect(specFromWire(json)).toMatchObject({ trial_mode: 'bold' });
    expect(() => specFromWire({ ...(json as object), trialMode: 'wild' })).toThrow('must be one of "careful", "bold"');
    const foreign = { protocol: 'tcp', name: 'shop', localPort: 1, trialMode: 'bold' };
    expect(() => specFromWire(foreign)).toThrow('is not an option of a tcp tunnel');
  });

  it('has a camel-case name in the library', () => {
    const named = libraryTunnelOf(specOf(BOLD));
    expect(named).toMatchObject({ protocol: 'http', trialMode: 'bold' });
    expect(specOfLibrary(named)).toMatchObject({ trial_mode: 'bold' });
  });

  it('is compared when the configuration is reloaded, and a change has the effect that its row declares', () => {
    const entryOf = (entry: string) => ({ name: 'shop', kind: 'tunnel' as const, fields: tunnelFields(specOf(entry)) });
    const running = { ...entryOf('{ proto: http, local_port: 1 }'), isOfFile: true };
    expect(planReload([running], [entryOf(BOLD)])).toMatchObject({ retarget: ['shop'], reopen: [], update: [] });
    const same = '{ proto: http, local_port: 1, trial_mode: careful }';
    expect(planReload([running], [entryOf(same)])).toMatchObject({ keep: ['shop'] });
  });

  it('is a row of docs/configuration.md', () => {
    const page = render(readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8'));
    expect(page).toMatch(
      /\| `tunnels\.<name>\.trial_mode` +\| `careful`, `bold` +\| `"careful"` +\| HTTP: how the trial is run +\|/,
    );
  });
});
