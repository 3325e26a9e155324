// `tunnel billing`: what the account that is logged in pays, its spend cap, and the way to the billing portal.
import type { BillingStatus } from '@tunnel/contract';
import { Command, InvalidArgumentError } from 'commander';
import { PlatformLogin } from '../api/platform-login.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { PROXY_FLAG } from '../flags.ts';
import type { Io } from '../io.ts';
import { billingLines } from '../output/account.ts';
import { centsOf, coloursOf, dollarsText } from '../output/text.ts';
import { oneLine } from '../problem-report.ts';

interface AccountFlags {
  readonly json?: boolean;
  readonly proxy?: string;
}

type Finish = (code: ExitCode) => void;

const EXAMPLES = `
Example:
  $ tunnel billing
  $ tunnel billing cap 20
  $ tunnel billing portal`;

export const billingCommand = (io: Io, finish: Finish): Command =>
  new Command('billing')
    .description('show what the account pays, cap it, and open the billing portal, after `tunnel login`')
    .addHelpText('after', EXAMPLES)
    .addCommand(statusCommand(io, finish), { isDefault: true })
    .addCommand(capCommand(io, finish))
    .addCommand(portalCommand(io, finish));

const statusCommand = (io: Io, finish: Finish): Command =>
  new Command('status')
    .description('plan, this month so far, cap, subscription and payment method')
    .option(...PROXY_FLAG)
    .option('--json', 'print it as JSON, as GET /billing gives it')
    .addHelpText('after', '\nExample:\n  $ tunnel billing --json')
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
Example:
  $ tunnel billing cap 20
  $ tunnel billing cap 20.50
  $ tunnel billing cap none

Usage of a calendar month (UTC) counts, without the minimum. When it is reached, tunnels are closed and new ones refused until the
cap is raised or the month is over. 0 allows no usage at all.`;

const capCommand = (io: Io, finish: Finish): Command =>
  new Command('cap')
    .description('set or remove the spend cap of a month')
    .argument('<amount>', 'US dollars, as 20 or 20.50; or none', parseCap)
    .option(...PROXY_FLAG)
    .option('--json', 'print the answer as JSON')
    .addHelpText('after', CAP_EXAMPLES)
    .action(async (cap: Cap, { json, ...flags }: AccountFlags) => {
      const login = PlatformLogin.open(io, flags);
      const set = await login.call((client) => client.setSpendCap({ spend_cap_cents: cap.cents }));
      const { spend_cap_cents: cents } = set;
      const text = cents === null ? 'there is no spend cap now' : `the spend cap is ${dollarsText(cents)} a month`;
      io.stdout.write(json === true ? `${JSON.stringify(set)}\n` : `${text}\n`);
      finish(EXIT.endedAsAsked);
    });

/** In an object: commander takes a parsed null for an argument that was not given. */
interface Cap {
  readonly cents: number | null;
}

const parseCap = (text: string): Cap => {
  if (text.toLowerCase() === 'none') return { cents: null };
  const cents = centsOf(text);
  if (cents === null) throw new InvalidArgumentError('It must be US dollars, as 20 or 20.50, or none.');
  return { cents };
};

const portalCommand = (io: Io, finish: Finish): Command =>
  new Command('portal')
    .description("print a link to the payment processor's billing portal: invoices, payment method, cancelling")
    .option('--return-url <url>', "where the portal leads back to (default: the platform's dashboard)")
    .option(...PROXY_FLAG)
    .option('--json', 'print the answer as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  $ tunnel billing portal\n\nWhoever has the link is let in: it is for you alone.',
    )
    .action(async ({ returnUrl, json, ...flags }: AccountFlags & { returnUrl?: string }) => {
      const login = PlatformLogin.open(io, flags);
      const return_url = returnUrl ?? `${login.platformUrl.replace(/\/$/, '')}/app/`;
      const portal = await login.call((client) => client.openPortal({ return_url }));
      io.stdout.write(json === true ? `${JSON.stringify(portal)}\n` : `${oneLine(portal.url)}\n`);
      finish(EXIT.endedAsAsked);
    });
