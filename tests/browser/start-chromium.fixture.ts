// Starts Chromium for tests and scripts: the browser of a development dependency, which is the same on all machines, or else an installed
// browser. TEST_BROWSER names a different program, for example a newer browser.
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type BrowserServer, chromium } from 'playwright-core';
import { ROOT } from '../repo/checkout.fixture.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const START_TIMEOUT_MS = 60_000;

/** Flags that make screenshots equal on all machines, and that suit containers with little shared memory. */
const FLAGS = ['--disable-dev-shm-usage', '--disable-gpu', '--force-color-profile=srgb', '--font-render-hinting=none'];

export type Started = { readonly server: BrowserServer } | { readonly server: null; readonly reason: string };

/** Tries the candidates one after the other, because an executable can be a mere stub that points to an app store. */
export const startChromium = async (): Promise<Started> => {
  const reasons: string[] = [];
  for (const { name, find } of candidates()) {
    try {
      const { path, env } = await find();
      return { server: await launch(path, env) };
    } catch (error) {
      reasons.push(`${name}: ${firstLine(error)}`);
    }
  }
  return { server: null, reason: reasons.join('; ') };
};

interface Found {
  readonly path: string;
  readonly env: Record<string, string>;
}

interface Candidate {
  readonly name: string;
  readonly find: () => Found | Promise<Found>;
}

const candidates = (): Candidate[] => {
  const named = process.env['TEST_BROWSER'];
  if (named !== undefined && named !== '') return [installed(named)];
  return [
    { name: '@sparticuz/chromium', find: () => packed(false) },
    { name: '@sparticuz/chromium with its libraries', find: () => packed(true) },
    ...NAMES.flatMap(onPath).map(installed),
  ];
};

const installed = (path: string): Candidate => ({ name: path, find: () => ({ path, env: {} }) });

const onPath = (name: string): string[] => {
  const files = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name));
  return files.filter(isExecutable).slice(0, 1);
};

const isExecutable = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
};

/**
 * Unpacks the browser of the dependency into our cache folder, because in the folder for temporary files other users could replace the
 * program.
 * `withLibraries` adds libraries of its original system, for machines that lack the libraries of a browser.
 */
const packed = async (withLibraries: boolean): Promise<Found> => {
  if (process.platform !== 'linux') throw new Error('for Linux alone');
  const folder = join(ROOT, '.cache', withLibraries ? 'chromium-whole' : 'chromium');
  mkdirSync(folder, { recursive: true });
  const libraries = withLibraries ? { LD_LIBRARY_PATH: join(folder, 'al2023/lib') } : {};
  const { default: chromiumPack } = await import('@sparticuz/chromium');
  const settings = { TMPDIR: folder, ...(withLibraries ? { AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs20.x' } : {}) };
  const path = await withVariables(settings, () => chromiumPack.executablePath());
  return { path, env: { FONTCONFIG_FILE: withFonts(folder), ...libraries } };
};

/**
 * Writes a font configuration, because without fonts text has no size and every page looks empty. The package's configuration names a
 * different folder.
 */
const withFonts = (folder: string): string => {
  const file = join(folder, 'fonts.conf');
  const system = '<include ignore_missing="yes">/etc/fonts/fonts.conf</include>';
  const own = `<dir>${join(folder, 'fonts')}</dir><cachedir>${join(folder, 'fonts-cache')}</cachedir>`;
  writeFileSync(file, `<?xml version="1.0"?>\n<fontconfig>${system}${own}</fontconfig>\n`);
  return file;
};

/** Runs the work with environment variables, because the package reads its settings from the environment. */
const withVariables = async <T>(settings: Record<string, string>, work: () => Promise<T>): Promise<T> => {
  const before = Object.keys(settings).map((name) => [name, process.env[name]] as const);
  Object.assign(process.env, settings);
  try {
    return await work();
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
};

/** Starts the browser without a sandbox: it opens only our pages, and neither root nor most containers have a sandbox. */
const launch = (executablePath: string, env: Record<string, string>): Promise<BrowserServer> =>
  chromium.launchServer({
    executablePath,
    args: FLAGS,
    chromiumSandbox: false,
    timeout: START_TIMEOUT_MS,
    env: { ...definedOnly(process.env), ...env },
  });

const definedOnly = (env: NodeJS.ProcessEnv): Record<string, string> =>
  Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));

const firstLine = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';

/** Stops the browser, by force if necessary, so that no process outlives the run. */
export const stopChromium = async (server: BrowserServer): Promise<void> => {
  await server.close().catch(() => server.kill());
};
