// `tunnel billing`: shows the costs of the signed-in account, sets its spend cap, and opens the billing portal.
import type { BillingStatus } from '@tunnel/contract';
import { Command, InvalidArgumentError } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { PROXY_FLAG } from '../config/flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { oneLine } from '../io/problem-report.ts';
import { billingLines } from '../output/account.ts';
import { coloursOf, dollarsText, parseCents } from '../output/text.ts';

interface AccountFlags {
  readonly json?: boolean;
  readonly proxy?: string;
}

type Finish = (code: ExitCode) => void;

const EXAMPLES = `
Examples:
  $ tunnel billing
  $ tunnel billing cap 20
  $ tunnel billing portal`;

export const billingCommand = (io: Io, finish: Finish): Command =>
  new Command('billing')
    .description('Show plan and costs, or set a spend cap')
    .addHelpText('after', EXAMPLES)
    .addCommand(statusCommand(io, finish), { isDefault: true })
    .addCommand(capCommand(io, finish))
    .addCommand(portalCommand(io, finish));

const statusCommand = (io: Io, finish: Finish): Command =>
  new Command('status')
    .description('Show the plan, costs this month, spend cap and payment method')
    .option(...PROXY_FLAG)
    .option('--json', 'Print the response as JSON')
    .addHelpText('after', '\nExamples:\n  $ tunnel billing --json')
    .action(async ({ json, ...flags }: AccountFlags) => {
      const login = PlatformLogin.open(io, flags);
      const status = await login.call((client) => client.billing());
      const lines = json === true ? [JSON.stringify(status)] : await linesOf(io, login, status);
      io.stdout.write(`${lines.join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const linesOf = async (io: Io, login: PlatformLogin, status: BillingStatus): Promise<string[]> => {
  const isCapped = status.billing_model === 'payg' && status.spend_cap_cents !== null;
  const usedCents = isCapped ? (await login.call((client) => client.billingUsage())).usage_cents : 0;
  const width = io.stdout.isTTY === true ? io.stdout.columns || 80 : null;
  return billingLines({ status, usedCents }, { width, colours: coloursOf(io) });
};

const CAP_EXAMPLES = `
Examples:
  $ tunnel billing cap 20
  $ tunnel billing cap 20.50
  $ tunnel billing cap none

The cap applies to metered usage per calendar month (UTC); the monthly minimum
does not count. When the cap is reached, tunnels stop until you raise the cap
or the month ends. 0 allows no usage.`;

const capCommand = (io: Io, finish: Finish): Command =>
  new Command('cap')
    .description('Set or remove the monthly spend cap')
    .argument('<amount>', 'US dollars (20, 20.50), or none', parseCap)
    .option(...PROXY_FLAG)
    .option('--json', 'Print the response as JSON')
    .addHelpText('after', CAP_EXAMPLES)
    .action(async (cap: Cap, { json, ...flags }: AccountFlags) => {
      const login = PlatformLogin.open(io, flags);
      const set = await login.call((client) => client.setSpendCap({ spend_cap_cents: cap.cents }));
      const { spend_cap_cents: cents } = set;
      const text = cents === null ? 'No spend cap.' : `Spend cap: ${dollarsText(cents)} a month.`;
      io.stdout.write(json === true ? `${JSON.stringify(set)}\n` : `${text}\n`);
      finish(EXIT.endedAsAsked);
    });

/** A parsed spend cap. The cap is inside an object, because commander takes a parsed null for a missing argument. */
interface Cap {
  readonly cents: number | null;
}

const parseCap = (text: string): Cap => {
  if (text.toLowerCase() === 'none') return { cents: null };
  const cents = parseCents(text);
  if (cents === null) throw new InvalidArgumentError('Use US dollars (20, 20.50), or none.');
  return { cents };
};

const portalCommand = (io: Io, finish: Finish): Command =>
  new Command('portal')
    .description('Print a link to the billing portal (invoices, payment method, cancellation)')
    .option('--return-url <url>', 'Page to return to from the portal (default: the dashboard)')
    .option(...PROXY_FLAG)
    .option('--json', 'Print the response as JSON')
    .addHelpText(
      'after',
      '\nExamples:\n  $ tunnel billing portal\n\nKeep the link secret: it opens the portal without a password.',
    )
    .action(async ({ returnUrl, json, ...flags }: AccountFlags & { returnUrl?: string }) => {
      const login = PlatformLogin.open(io, flags);
      const return_url = returnUrl ?? `${login.platformUrl.replace(/\/$/, '')}/app/`;
      const portal = await login.call((client) => client.openPortal({ return_url }));
      io.stdout.write(json === true ? `${JSON.stringify(portal)}\n` : `${oneLine(portal.url)}\n`);
      finish(EXIT.endedAsAsked);
    });
