// Actions on the first public URL of a run, taken once: show a QR code (--qr), open the browser (--open).
import { spawn } from 'node:child_process';
import { protocolTraits, type StatusEvent, type Tunnel } from '@tunnel/client';
import type { Io } from '../../io/io.ts';
import { oneLine } from '../../io/problem-report.ts';
import type { RunHook, RunningClient, TunnelRun } from './running-client.ts';

const NARROW = 'the terminal is too narrow for the QR code of this URL';

/** Creates the hook for --qr. Returns null without --qr, and with --json, because programs have no camera. */
export const qrCode = ({ flags }: TunnelRun, io: Pick<Io, 'stdout' | 'env'>): RunHook | null => {
  if (flags.qr !== true || flags.json === true) return null;
  return onFirst(
    () => true,
    async ({ publicUrl }, running) => running.notice(await qrText(publicUrl, io), 'stdout'),
    'cannot draw a QR code',
  );
};

/**
 * Draws a QR code with light squares on the terminal's background. On a color terminal, both colors are set, so that a light theme does
 * not invert the code.
 */
const qrText = async (url: string, { stdout, env }: Pick<Io, 'stdout' | 'env'>): Promise<string> => {
  const { renderUnicodeCompact } = await import('uqr');
  const lines = renderUnicodeCompact(url, { border: 2 }).split('\n');
  const isTerminal = stdout.isTTY === true;
  if (isTerminal && (lines[0]?.length ?? 0) > (stdout.columns || 80)) return NARROW;
  const isColoured = isTerminal && (env['NO_COLOR'] ?? '') === '';
  return (isColoured ? lines.map((line) => `\u001b[97;40m${line}\u001b[0m`) : lines).join('\n');
};

export const browser = ({ flags }: TunnelRun, io: Pick<Io, 'env'>): RunHook | null => {
  if (flags.open !== true) return null;
  return onFirst(
    ({ protocol, publicUrl }) => protocolTraits(protocol).carriesRequests && /^https?:\/\//.test(publicUrl),
    ({ publicUrl }) => openInBrowser(publicUrl, io.env),
    'cannot open a browser',
  );
};

/** Creates a hook that acts on the first matching tunnel. A failure of the action is reported and ends no tunnel. */
const onFirst = (
  isMeant: (tunnel: Tunnel) => boolean,
  act: (tunnel: Tunnel, running: RunningClient) => Promise<void>,
  failure: string,
): RunHook => {
  let running: RunningClient | null = null;
  let isDone = false;
  const tell = (client: RunningClient, { publicUrl }: Tunnel, error: unknown): void => {
    const reason = error instanceof Error ? error.message : String(error);
    client.notice(`tunnel: ${failure}: ${oneLine(reason)}\n  Open ${oneLine(publicUrl)} by hand.`, 'stderr');
  };
  const onStatus = (event: StatusEvent): void => {
    if (isDone || running === null || event.type !== 'tunnel-opened' || !isMeant(event.tunnel)) return;
    isDone = true;
    const client = running;
    act(event.tunnel, client).catch((error: unknown) => tell(client, event.tunnel, error));
  };
  return {
    onRunning: (client) => {
      running = client;
    },
    output: { onStatus },
  };
};

/** Programs that open a URL in the browser. Run without a shell, because the URL comes from the edge. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [program: string, ...args: string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

const openInBrowser = async (url: string, env: Io['env']): Promise<void> => {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, url], { env: { ...env }, stdio: 'ignore', detached: true });
  child.unref();
  await new Promise<void>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'ENOENT' ? new Error(`${program} is not installed`) : error),
    );
    // The opener exits immediately, or is the browser itself and exits when the user closes the browser. The opener must not keep this
    // process alive.
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${program} failed`))));
  });
};
