// `tunnel domains`: custom domains of the account, the DNS records that prove ownership, and certificates.
import { asciiDomain } from '@tunnel/client';
import type { OwnDomainView } from '@tunnel/contract';
import { Fault, nearestWord } from '@tunnel/errors';
import { Command } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { PROXY_FLAG } from '../config/flags.ts';
import { EXIT, type ExitCode, exitCodeOfSignal } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { misuse, oneLine } from '../io/problem-report.ts';
import { ADD_YES, requireTerminal, withPrompt } from '../io/terminal-prompt.ts';
import { listenForStop, pause } from '../io/until-stopped.ts';
import { domainDetails, domainLines, progressLines, typedName, useLine } from '../output/domains.ts';
import { coloursOf, counted } from '../output/text.ts';

/** Interval between two queries of `tunnel domains add --wait`. The platform checks the DNS records at its own pace. */
export const DOMAIN_LOOK_EVERY_MS = 1000;
/**
 * Wait before `tunnel domains check` repeats the check of a domain that was checked a moment ago. The platform has the same limit of 5 s.
 */
const DOMAIN_CHECK_AGAIN_MS = 5000;
/** Maximum attempts of `tunnel domains check`. Automatic checks of the platform come in between. */
const DOMAIN_CHECK_TRIES = 4;

type Finish = (code: ExitCode) => void;

interface ShowFlags {
  readonly json?: boolean;
  readonly proxy?: string;
}

const EXAMPLES = `
Examples:
  $ tunnel domains add shop.example.com
  $ tunnel http 3000 --domain shop.example.com
  $ tunnel domains`;

export const domainsCommand = (io: Io, finish: Finish): Command =>
  new Command('domains')
    .description('List, add, check and remove your own domains')
    .addHelpText('after', EXAMPLES)
    .addCommand(listCommand(io, finish), { isDefault: true })
    .addCommand(addCommand(io, finish))
    .addCommand(checkCommand(io, finish))
    .addCommand(showCommand(io, finish))
    .addCommand(removeCommand(io, finish));

const listCommand = (io: Io, finish: Finish): Command =>
  new Command('list')
    .description('List your domains with their state and certificates')
    .option(...PROXY_FLAG)
    .option('--json', 'Print the list as JSON')
    .addHelpText('after', LIST_EXAMPLES)
    .action(async ({ json, ...flags }: ShowFlags) => {
      const login = PlatformLogin.open(io, flags);
      const list = await login.call((client) => client.domains());
      const limit = json === true ? null : ((await login.call((client) => client.usage())).domain_limit ?? null);
      const lines = json === true ? [JSON.stringify(list)] : domainLines(list, limit, coloursOf(io));
      io.stdout.write(`${lines.join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const LIST_EXAMPLES = `
Examples:
  $ tunnel domains
  $ tunnel domains list --json

States:
  pending    Waiting for the DNS records
  verified   Ready for tunnels
  failed     No DNS records found for three days
  lapsed     The records are gone, or another account verified the domain`;

interface AddFlags extends ShowFlags {
  readonly certificate: boolean;
  readonly wait?: boolean;
}

const ADD_EXAMPLES = `
Examples:
  $ tunnel domains add shop.example.com
  $ tunnel domains add shop.example.com --wait
  $ tunnel domains add '*.shop.example.com'

Prints the DNS records to create at your DNS provider. With --wait, the exit
code is 0 once the domain is verified and has a valid certificate, or 1 if
verification failed.`;

const addCommand = (io: Io, finish: Finish): Command =>
  new Command('add')
    .description('Add a domain and show its DNS records')
    .argument('<host>', 'Your host name, or a wildcard such as *.shop.example.com')
    .option('--no-certificate', 'Do not issue a certificate')
    .option('--wait', 'Wait until the domain is verified and has a certificate')
    .option('--json', 'Print the domain as JSON')
    .option(...PROXY_FLAG)
    .addHelpText('after', ADD_EXAMPLES)
    .action(async (host: string, { certificate, wait, json, ...flags }: AddFlags) => {
      const login = PlatformLogin.open(io, flags);
      const body = { name: asciiDomain(host), ...(certificate ? {} : { certificate }) };
      const added = await login.call((client) => client.addDomain(body));
      if (wait !== true) {
        print(added, json, io);
        return finish(EXIT.endedAsAsked);
      }
      if (json !== true) print(added, json, io);
      finish(await waitFor(added, login, json, io));
    });

const print = (domain: OwnDomainView, json: boolean | undefined, io: Io): void => {
  const lines = json === true ? [JSON.stringify(domain)] : domainDetails(domain, coloursOf(io));
  io.stdout.write(`${lines.join('\n')}\n`);
};

/** Waits until the domain is ready or has failed. Prints every found record, new state, and step of the certificate once. */
const waitFor = async (
  added: OwnDomainView,
  login: PlatformLogin,
  json: boolean | undefined,
  io: Io,
): Promise<ExitCode> => {
  const stop = listenForStop(io);
  const tell = (lines: readonly string[]): void => {
    if (json !== true && lines.length > 0) io.stdout.write(`${lines.join('\n')}\n`);
  };
  tell(['', `Waiting for ${oneLine(added.name)}. Press Ctrl-C to stop waiting; the domain stays added.`]);
  // The first check runs immediately. A failed domain is otherwise not checked again, and a new domain would wait for its first automatic
  // check.
  let now = isReady(added) ? added : await lookNow(added, login);
  tell(progressLines(added, now));
  while (!isReady(now) && now.state !== 'failed' && !stop.aborted) {
    await pause(DOMAIN_LOOK_EVERY_MS, stop, io);
    if (stop.aborted) break;
    const before = now;
    now = await login.call((client) => client.domain(before.id)).catch(stillThere(before));
    tell(progressLines(before, now));
  }
  if (json === true) print(now, json, io);
  if (isReady(now)) tell([useLine(now)]);
  if (isReady(now)) return EXIT.endedAsAsked;
  return now.state === 'failed' ? EXIT.unexpected : exitCodeOfSignal('SIGINT');
};

/**
 * Returns an error handler for the wait. A platform that is briefly unreachable is queried again, because a user who passes --wait has
 * time.
 */
const stillThere =
  (before: OwnDomainView) =>
  (error: unknown): OwnDomainView => {
    if (error instanceof Fault && error.retryable && error.cause === undefined) return before;
    throw error;
  };

const isReady = ({ state, certificate }: OwnDomainView): boolean =>
  state === 'verified' && (certificate === null || certificate.state === 'valid' || certificate.state === 'renewing');

/** Checks a domain now. If the domain was checked a moment ago, returns the known state. */
const lookNow = (domain: OwnDomainView, login: PlatformLogin): Promise<OwnDomainView> =>
  login
    .call((client) => client.checkDomain(domain.id))
    .catch((error: unknown) => {
      if (isTooSoon(error)) return domain;
      throw error;
    });

const isTooSoon = (error: unknown): boolean => error instanceof Fault && error.status === 429;

const HOST = ['<host>', 'One of your domains (see `tunnel domains`)'] as const;

const checkCommand = (io: Io, finish: Finish): Command =>
  new Command('check')
    .description("Check a domain's DNS records now")
    .argument(...HOST)
    .option('--json', 'Print the domain as JSON')
    .option(...PROXY_FLAG)
    .addHelpText('after', '\nExamples:\n  $ tunnel domains check shop.example.com')
    .action(async (host: string, { json, ...flags }: ShowFlags) => {
      const login = PlatformLogin.open(io, flags);
      const { id } = await findDomain(login, host);
      const found = await look(id, login, io);
      if (found === null) return finish(exitCodeOfSignal('SIGINT'));
      print(found, json, io);
      finish(EXIT.endedAsAsked);
    });

/**
 * Checks a domain now, and retries while checks are too frequent: the platform also checks automatically, and rejects further checks for
 * some seconds after a check. Returns null after Ctrl-C.
 */
const look = async (id: string, login: PlatformLogin, io: Io): Promise<OwnDomainView | null> => {
  const stop = listenForStop(io);
  for (let tries = 1; ; tries += 1) {
    try {
      return await login.call((client) => client.checkDomain(id));
    } catch (error) {
      if (!isTooSoon(error) || tries === DOMAIN_CHECK_TRIES) throw error;
    }
    if (tries === 1) io.stderr.write('The domain was checked a moment ago. Checking again in a few seconds.\n');
    await pause(DOMAIN_CHECK_AGAIN_MS, stop, io);
    if (stop.aborted) return null;
  }
};

const showCommand = (io: Io, finish: Finish): Command =>
  new Command('show')
    .description("Show a domain's DNS records and certificate")
    .argument(...HOST)
    .option('--json', 'Print the domain as JSON')
    .option(...PROXY_FLAG)
    .addHelpText('after', '\nExamples:\n  $ tunnel domains show shop.example.com')
    .action(async (host: string, { json, ...flags }: ShowFlags) => {
      print(await findDomain(PlatformLogin.open(io, flags), host), json, io);
      finish(EXIT.endedAsAsked);
    });

const REMOVE_EXAMPLES = `
Examples:
  $ tunnel domains remove shop.example.com
  $ tunnel domains remove shop.example.com --yes

The domain's tunnels close within 2 seconds, and its certificate and private
key are destroyed. Also delete the DNS records: they still point to this
server.`;

const removeCommand = (io: Io, finish: Finish): Command =>
  new Command('remove')
    .description('Remove a domain; its tunnels close within 2 seconds')
    .argument(...HOST)
    .option('--yes', 'Skip the confirmation')
    .option(...PROXY_FLAG)
    .addHelpText('after', REMOVE_EXAMPLES)
    .action(async (host: string, { yes, ...flags }: { yes?: boolean; proxy?: string }) => {
      const login = PlatformLogin.open(io, flags);
      if (yes !== true) requireTerminal(io, ADD_YES);
      const found = await findDomain(login, host);
      if (yes !== true && !(await confirm(found, io))) {
        io.stdout.write('Nothing removed.\n');
        return finish(EXIT.endedAsAsked);
      }
      await login.call((client) => client.removeDomain(found.id));
      io.stdout.write(`Removed ${oneLine(found.name)}. Also delete its DNS records.\n`);
      finish(EXIT.endedAsAsked);
    });

const confirm = async (found: OwnDomainView, io: Io): Promise<boolean> => {
  const name = oneLine(found.name);
  const { active_tunnels: active } = found;
  const open = active === 0 ? '' : `${counted(active, 'open tunnel closes', 'open tunnels close')}. `;
  io.stderr.write(`Remove ${name}? ${open}The certificate and its private key are destroyed.\n`);
  const answer = await withPrompt(io, ADD_YES, (prompt) => prompt.ask(`Type ${name} to confirm: `));
  return asciiDomain(answer.trim()) === found.name;
};

/** Finds a domain by its name as typed. Throws a Fault with a suggestion for an unknown name. */
const findDomain = async (login: PlatformLogin, typed: string): Promise<OwnDomainView> => {
  const list = await login.call((client) => client.domains());
  const wanted = asciiDomain(typed);
  const found = list.find(({ name }) => name === wanted);
  if (found !== undefined) return found;
  const near = nearestWord(
    wanted,
    list.map(({ name }) => name),
  );
  const next =
    near === undefined ? `Add it: \`tunnel domains add ${typedName({ name: wanted })}\`.` : `Did you mean ${near}?`;
  throw misuse(`you have no domain '${oneLine(wanted)}'. ${next}`);
};
