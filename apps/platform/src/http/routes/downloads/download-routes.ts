// The server hands out its client: the install page and scripts, and the files of the release in `[platform] downloads_dir`.
import { Fault } from '@tunnel/errors';
import { headerOf, socketOf } from '@tunnel/http-shell';
import { networkOf } from '@tunnel/rules/net';
import { type Clock, type Logger, LogLimiter, sha256Hex } from '@tunnel/runtime';
import type { Context } from 'hono';
import {
  clientTarball,
  hasExecutable,
  type Release,
  type ReleaseFile,
  SUMS,
  sumsByName,
} from '../../../services/downloads/release.rules.ts';
import { type OpenedFile, ReleaseFolder } from '../../../services/downloads/release-folder.ts';
import type { PlatformApp, PlatformEnv } from '../../shared/platform-env.ts';
import { isKnown } from '../pages/static-files.ts';
import { DownloadSlots } from './download-slots.ts';
import { FileStream } from './file-stream.ts';
import { type InstallOffer, installPage } from './install-page.ts';
import { powershellScript, shellScript } from './install-script.rules.ts';
import { type FilePart, readRange } from './range.rules.ts';

const DOWNLOADS = '/downloads/';
const INSTALL_PATHS: ReadonlySet<string> = new Set(['/install', '/install.sh', '/install.ps1']);

/** Served without the database. */
export const isDownloadPath = (path: string): boolean => INSTALL_PATHS.has(path) || path.startsWith(DOWNLOADS);

/** The version of the client that the scripts install. Absent without executables: so the dashboard knows whether to show the command. */
const VERSION_HEADER = 'x-tunnel-client-version';

const TEXT = 'text/plain; charset=utf-8';
/** Names stay the same when the operator puts a new version in place, so every use of a stored copy needs a check by ETag. */
const CACHE_CONTROL = 'public, no-cache';

export interface DownloadDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Version of the server. */
  readonly version: string;
  readonly settings: { readonly public_url: string; readonly downloads_dir: string };
}

export const addDownloadRoutes = (app: PlatformApp, deps: DownloadDeps): void => {
  const { clock, logger, settings } = deps;
  const folder = new ReleaseFolder({ dir: settings.downloads_dir, logger });
  const offer = async (context: Context<PlatformEnv>): Promise<InstallOffer> => {
    const found = offerOf(await folder.read(), deps);
    if (found.problem === null && (found.hasPosix || found.hasWindows)) context.header(VERSION_HEADER, found.version);
    return found;
  };
  app.get('/install', async (context) => {
    context.header('vary', 'accept');
    const found = await offer(context);
    if (!isForBrowser(headerOf(context, 'accept')))
      return context.body(shellScript(found), 200, { 'content-type': TEXT });
    const { html, policy } = installPage(found);
    context.header('content-security-policy', policy);
    return context.html(html);
  });
  app.get('/install.sh', async (context) =>
    context.body(shellScript(await offer(context)), 200, { 'content-type': TEXT }),
  );
  app.get('/install.ps1', async (context) =>
    context.body(powershellScript(await offer(context)), 200, { 'content-type': TEXT }),
  );
  const send = fileSender({ folder, clock, log: new LogLimiter(logger, () => clock.monotonic()) });
  app.get(`${DOWNLOADS}:file`, async (context) => {
    const name = context.req.param('file');
    const release = await folder.read();
    const file = release?.files.find((one) => one.name === name);
    if (release !== null && name === SUMS) return sendSums(context, release);
    if (file === undefined) throw new Fault('API_NOT_FOUND', { path: context.req.path });
    return send(context, file);
  });
};

/** Programs such as curl accept anything, but do not name HTML. */
const isForBrowser = (accept: string | undefined): boolean => accept?.toLowerCase().includes('text/html') === true;

const offerOf = (release: Release | null, { settings, version }: DownloadDeps): InstallOffer => ({
  platform: settings.public_url.replace(/\/+$/, ''),
  version,
  problem: problemOf(release, version),
  tarball: release === null ? null : (clientTarball(release)?.name ?? null),
  hasPosix: release !== null && hasExecutable(release, 'linux', 'darwin'),
  hasWindows: release !== null && hasExecutable(release, 'win'),
});

/** Client and server have the same version: files of another version are not offered for installation. */
const problemOf = (release: Release | null, version: string): string | null => {
  const remedy = 'Operators: run tunnel-server downloads fetch on the server.';
  if (release === null) return `The operator of this server has put no files here. ${remedy}`;
  if (release.version === version) return null;
  return `The files on this server have version ${release.version}, but the server has version ${version}. ${remedy}`;
};

const sendSums = (context: Context<PlatformEnv>, release: Release): Response => {
  const text = sumsByName(release);
  const etag = `"${sha256Hex(text).slice(0, 32)}"`;
  const headers = { etag, 'cache-control': CACHE_CONTROL };
  if (isKnown(headerOf(context, 'if-none-match'), etag)) return context.body(null, 304, headers);
  return context.body(text, 200, { ...headers, 'content-type': TEXT });
};

interface SenderDeps {
  readonly folder: ReleaseFolder;
  readonly clock: Clock;
  readonly log: LogLimiter;
}

type SendFile = (context: Context<PlatformEnv>, file: ReleaseFile) => Promise<Response>;

const fileSender = ({ folder, clock, log }: SenderDeps): SendFile => {
  const slots = new DownloadSlots();
  const stream = (
    context: Context<PlatformEnv>,
    { name }: ReleaseFile,
    opened: OpenedFile,
    part: FilePart,
  ): FileStream => {
    const { outgoing } = socketOf(context);
    const network = networkOf(context.get('address'));
    const free = slots.take(network, () => made.cut('the slot was given to another network'));
    const made = new FileStream({
      ...part,
      file: opened,
      clock,
      disconnect: outgoing === undefined ? null : () => void outgoing.destroy(),
      onCut: (reason) => log.log('warn', reason, { file: name, network, reason }, 'a download was cut off'),
      onEnd: free,
    });
    // The body of a response to a caller that is gone is never read nor cancelled.
    if (outgoing?.destroyed === true) made.leave();
    else outgoing?.once('close', () => made.leave());
    return made;
  };
  return async (context, file) => {
    const opened = await folder.open(file).catch((error: unknown) => {
      log.log('warn', file.name, { file: file.name, err: error }, 'a file of the downloads folder cannot be served');
      throw error;
    });
    let body: FileStream['body'] | null = null;
    try {
      const { etag } = opened;
      const headers = { etag, 'cache-control': CACHE_CONTROL, 'accept-ranges': 'bytes' };
      if (isKnown(headerOf(context, 'if-none-match'), etag)) return context.body(null, 304, headers);
      const isHead = context.req.method === 'HEAD';
      const part = isHead ? 'whole' : readRange(rangeHeaders(context), { bytes: file.bytes, etag });
      if (part === 'outside') throw outside(context, file);
      const { start, length } = part === 'whole' ? { start: 0, length: file.bytes } : part;
      if (!isHead && length > 0) body = stream(context, file, opened, { start, length }).body;
      return context.newResponse(body, part === 'whole' ? 200 : 206, {
        ...headers,
        'content-type': typeOf(file.name),
        'content-length': String(length),
        ...(part === 'whole' ? {} : { 'content-range': `bytes ${start}-${start + length - 1}/${file.bytes}` }),
      });
    } finally {
      // Else the stream closes the file.
      if (body === null) await opened.handle.close();
    }
  };
};

const rangeHeaders = (context: Context<PlatformEnv>) => ({
  range: headerOf(context, 'range'),
  ifRange: headerOf(context, 'if-range'),
});

const outside = (context: Context<PlatformEnv>, { name, bytes }: ReleaseFile): Fault => {
  context.header('content-range', `bytes */${bytes}`);
  return new Fault('DOWNLOAD_RANGE', { name, bytes });
};

const typeOf = (name: string): string => {
  if (name.endsWith('.txt')) return TEXT;
  return name.endsWith('.tgz') ? 'application/gzip' : 'application/octet-stream';
};
