// `tunnel reserve`, `tunnel reservations`, `tunnel release`: names and ports that belong to the account, whether or not a tunnel is open.
import type { NewReservation, Reservation } from '@tunnel/contract';
import { Fault, nearestWord } from '@tunnel/errors';
import { Command } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { PROXY_FLAG, portNumber } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { hintOf, misuse, oneLine } from '../io/problem-report.ts';
import { ADD_YES, requireTerminal, withPrompt } from '../io/terminal-prompt.ts';
import { addressOf, nameOf, releasedLine, reservationLines, reservedLines } from '../output/reservations.ts';
import { coloursOf } from '../output/text.ts';

type Finish = (code: ExitCode) => void;

interface ReserveFlags {
  /** TCP port to reserve. True reserves any free port. */
  readonly tcp?: number | true;
  readonly udp?: number | true;
  readonly region?: string;
  readonly json?: boolean;
  readonly proxy?: string;
}

const RESERVE_EXAMPLES = `
Examples:
  $ tunnel reserve shop
  $ tunnel reserve --tcp
  $ tunnel reserve --udp 20153 --region fra

A reserved name or port stays yours until you release it, even while no tunnel
is open.`;

export const reserveCommand = (io: Io, finish: Finish): Command =>
  new Command('reserve')
    .description('Reserve a name or port permanently')
    .argument('[name]', 'Subdomain to reserve')
    .option('--tcp [port]', 'Reserve this TCP port, or any free port', portNumber)
    .option('--udp [port]', 'Reserve this UDP port, or any free port', portNumber)
    .option('--region <id>', 'Region of the port, if there are several')
    .option('--json', 'Print the reservation as JSON')
    .option(...PROXY_FLAG)
    .addHelpText('after', RESERVE_EXAMPLES)
    .action(async (name: string | undefined, { json, proxy, ...flags }: ReserveFlags) => {
      const wanted = wantedOf(name, flags);
      const login = PlatformLogin.open(io, proxy === undefined ? {} : { proxy });
      const made = await login.call((client) => client.reserve(wanted)).catch(rethrowInFlags);
      io.stdout.write(`${json === true ? JSON.stringify(made) : reservedLines(made).join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

/** Converts argument and flags to a reservation. Throws a Fault for arguments that exclude each other. */
const wantedOf = (name: string | undefined, { tcp, udp, region }: ReserveFlags): NewReservation => {
  if ([name, tcp, udp].filter((one) => one !== undefined).length > 1) {
    throw misuse('reserve one at a time: a name, --tcp or --udp.');
  }
  if (name !== undefined) return wantedName(name, region);
  const kind = tcp === undefined ? 'udp' : 'tcp';
  const port = tcp ?? udp;
  if (port === undefined) throw misuse('give a name to reserve, or --tcp or --udp for a port.');
  const label = port === true ? {} : { label: String(port) };
  return { kind, ...label, ...(region === undefined ? {} : { region_id: region }) };
};

const wantedName = (name: string, region: string | undefined): NewReservation => {
  const [, kind, port] = PORT_NAME.exec(name) ?? [];
  if (kind !== undefined) throw misuse(`'${name}' is a port. Use --${kind} ${port}.`);
  if (region !== undefined) throw misuse('--region is only for ports: names are reserved in every region.');
  return { kind: 'subdomain', label: name };
};

/** Matches a port in the form shown by `tunnel reservations`, such as `tcp/20042`. */
const PORT_NAME = /^(tcp|udp)\/(\d+)$/;

/**
 * Rethrows an error of the platform as a usage error. The platform's message names fields instead of flags. A TUNNEL_ error would also
 * lead to the exit code for rejected tunnels, although only the typed text is wrong.
 */
const rethrowInFlags = (error: unknown): never => {
  if (!(error instanceof Fault)) throw error;
  if (error.code === 'API_BAD_REQUEST') throw misuse(flagWords(error.message));
  if (!error.code.startsWith('TUNNEL_')) throw error;
  const next = IN_USE[error.code] ?? hintOf(error) ?? '';
  throw misuse(`${error.message}. ${next}`.trim());
};

const flagWords = (text: string): string =>
  text.replace(/^region_id: (?=is )/, '--region ').replace(/^(?:region_id|label|kind): /, '');

const IN_USE: Readonly<Record<string, string>> = {
  TUNNEL_SUBDOMAIN_IN_USE: 'Choose another name.',
  TUNNEL_PORT_IN_USE: 'Choose another port, or leave out the number to get a free port.',
};

export const reservationsCommand = (io: Io, finish: Finish): Command =>
  new Command('reservations')
    .description('List your reserved and held names and ports')
    .option(...PROXY_FLAG)
    .option('--all', 'Include random names assigned by the edge')
    .option('--json', 'Print the list as JSON')
    .addHelpText('after', LIST_EXAMPLES)
    .action(async ({ json, all, ...flags }: { json?: boolean; all?: boolean; proxy?: string }) => {
      const login = PlatformLogin.open(io, flags);
      const list = await login.call((client) => client.reservations());
      const limit = json === true ? null : ((await login.call((client) => client.usage())).reserved_limit ?? null);
      const lines =
        json === true
          ? [JSON.stringify(list)]
          : reservationLines(list, { limit, isWhole: all === true }, coloursOf(io));
      io.stdout.write(`${lines.join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const LIST_EXAMPLES = `
Examples:
  $ tunnel reservations
  $ tunnel reservations --json

States:
  reserved   Yours until you release it
  held       Used by your tunnels: yours for 30 days after the last tunnel
             closed, or 24 hours for a random name
  released   For 7 days, only you can take it back, with \`tunnel reserve\`
These are the default times; the operator of the server can change them.`;

interface ReleaseFlags {
  readonly region?: string;
  readonly yes?: boolean;
  readonly proxy?: string;
}

const RELEASE_EXAMPLES = `
Examples:
  $ tunnel release shop
  $ tunnel release tcp/20042 --yes

A name or port in use is released when its tunnels close. For 7 days (by
default), you can take it back with \`tunnel reserve\`. After that, any account
can use the name or port, and receives the traffic that is still sent to it.`;

export const releaseCommand = (io: Io, finish: Finish): Command =>
  new Command('release')
    .description('Release a reserved or held name or port')
    .argument('<name>', 'Name, tcp/PORT or udp/PORT (see `tunnel reservations`)')
    .option('--region <id>', 'Region of the port, if you have it in several')
    .option('--yes', 'Skip the confirmation')
    .option(...PROXY_FLAG)
    .addHelpText('after', RELEASE_EXAMPLES)
    .action(async (name: string, { region, yes, ...flags }: ReleaseFlags) => {
      const login = PlatformLogin.open(io, flags);
      if (yes !== true) requireTerminal(io, ADD_YES);
      const list = (): Promise<Reservation[]> => login.call((client) => client.reservations());
      const found = chooseReservation(await list(), name, region);
      if (found.state !== 'released') {
        if (yes !== true && !(await confirm(found, io))) {
          io.stdout.write('Nothing released.\n');
          return finish(EXIT.endedAsAsked);
        }
        await login.call((client) => client.release(found.id));
      }
      // The response to a release has no body. The list has the time until which the name can be taken back.
      const left = (await list()).find(({ id }) => id === found.id);
      io.stdout.write(`${releasedLine(found, left)}\n`);
      finish(EXIT.endedAsAsked);
    });

const confirm = async (found: Reservation, io: Io): Promise<boolean> => {
  const name = oneLine(nameOf(found));
  io.stderr.write(`Release ${addressOf(found)}? After a few days, any account can use it.\n`);
  const answer = await withPrompt(io, ADD_YES, (prompt) => prompt.ask(`Type ${name} to confirm: `));
  return answer.trim().toLowerCase() === nameOf(found);
};

/** Finds the reservation for a typed name. Throws a Fault with a suggestion, or with the regions of the port. */
const chooseReservation = (list: readonly Reservation[], typed: string, region: string | undefined): Reservation => {
  const wanted = typed.toLowerCase();
  const fitting = list.filter((one) => nameOf(one) === wanted);
  const [first, ...others] = fitting.filter(({ region_id }) => region === undefined || region_id === region);
  if (first === undefined) throw unknown(list, fitting, wanted, region);
  if (others.length === 0) return first;
  throw misuse(`you have ${wanted} in several regions. Use ${regionFlags(fitting)}.`);
};

const unknown = (
  list: readonly Reservation[],
  elsewhere: readonly Reservation[],
  wanted: string,
  region: string | undefined,
): Fault => {
  if (elsewhere.length > 0 && region !== undefined) {
    const isName = elsewhere[0]?.kind === 'subdomain';
    const instead = isName
      ? 'Names are reserved in every region: leave out --region.'
      : `Use ${regionFlags(elsewhere)}.`;
    return misuse(`you do not have ${wanted} in the region '${region}'. ${instead}`);
  }
  // A similar port number is not suggested, because it is unlikely to be a typing error. Only the same port number, or a similar name, is
  // suggested.
  const number = PORT_NAME.exec(wanted)?.[2] ?? wanted;
  const port = list.find(({ kind, label }) => kind !== 'subdomain' && label === number);
  const names = list.filter(({ kind }) => kind === 'subdomain').map(nameOf);
  const near = port === undefined ? nearestWord(wanted, names) : nameOf(port);
  const next = near === undefined ? 'List your reservations: `tunnel reservations`.' : `Did you mean ${near}?`;
  return misuse(`you have no reservation '${wanted}'. ${next}`);
};

const regionFlags = (list: readonly Reservation[]): string =>
  list.map(({ region_id: id }) => `--region ${id}`).join(' or ');
