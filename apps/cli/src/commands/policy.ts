// `tunnel policy check|test|hash`: checks the rules of a tunnel without a server. No code in this file opens a connection.
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hashPassword, type PolicyVerdict, readPolicyFile, type TracedRule, testPolicy } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { Command, InvalidArgumentError, Option } from 'commander';
import { repeated } from '../config/tunnel-flags.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import type { Io } from '../io/io.ts';
import { misuse, oneLine } from '../io/problem-report.ts';
import { withPrompt } from '../io/terminal-prompt.ts';
import { counted } from '../output/text.ts';

type Finish = (code: ExitCode) => void;

export const policyCommand = (io: Io, finish: Finish): Command => {
  const policy = new Command('policy')
    .description('Check and test policy files offline')
    .addHelpText('after', '\nExamples:\n  $ tunnel policy check shop-policy.yml');
  for (const command of [checkPolicyCommand, testCommand, hashCommand]) policy.addCommand(command(io, finish));
  return policy;
};

const names = (text: string): readonly string[] => text.split(',').map((name) => name.trim());

const servicesOption = (): Option =>
  new Option('--services <names>', 'Services that `route` can name, separated by commas')
    .default([], 'none')
    .argParser(names);

// ---- check ----

interface CheckFlags {
  readonly proto: 'http' | 'tcp' | 'udp';
  readonly services: readonly string[];
}

const checkPolicyCommand = (io: Io, finish: Finish): Command =>
  new Command('check')
    .description('Check a policy file for errors')
    .argument('<file>', 'Policy file')
    .addOption(
      new Option('--proto <protocol>', 'Protocol of the tunnel').choices(['http', 'tcp', 'udp']).default('http'),
    )
    .addOption(servicesOption())
    .addHelpText('after', '\nExamples:\n  $ tunnel policy check shop-policy.yml --services api,admin')
    .action((file: string, { proto: protocol, services }: CheckFlags) => {
      const policy = readPolicy(file, io);
      const about = { protocol, services };
      policy.check(about);
      const warnings = policy.warnings(about).map((warning) => `  warning: ${oneLine(warning)}`);
      const good = `${oneLine(file)} is good: ${counted(policy.ruleCount, 'rule', 'rules')}`;
      io.stdout.write(`${[good, ...warnings].join('\n')}\n`);
      finish(EXIT.endedAsAsked);
    });

const readPolicy = (file: string, io: Io) =>
  readPolicyFile(pathFrom(io.cwd, file, io.home), { shown: file, env: io.env, home: io.home });

// ---- test ----

interface TestFlags {
  readonly request: AskedRequest;
  readonly header?: readonly string[];
  readonly address: string;
  readonly user?: string;
  readonly bodyFile?: string;
  readonly services: readonly string[];
  readonly expect?: 'pass' | number;
  readonly json?: boolean;
}

interface AskedRequest {
  readonly method: string;
  readonly path: string;
}

const askedRequest = (text: string): AskedRequest => {
  const [, method, path] = /^([^\s]+) ([^\s]+)$/.exec(text) ?? [];
  if (method === undefined || path === undefined) throw new InvalidArgumentError("Use 'METHOD PATH', such as 'GET /'.");
  return { method, path };
};

/** Parses the address of a visitor. An IPv4-mapped IPv6 address becomes the IPv4 address. */
const visitorAddress = (text: string): string => {
  if (isIP(text) === 0) throw new InvalidArgumentError('Use an IP address.');
  return text.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '');
};

const expected = (text: string): 'pass' | number => {
  if (text === 'pass') return text;
  const status = /^[1-5]\d\d$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(status)) throw new InvalidArgumentError('Use pass or an HTTP status.');
  return status;
};

const TEST_EXAMPLES = `
Examples:
  $ tunnel policy test shop-policy.yml --request 'GET /admin' --expect 401
  $ tunnel policy test shop-policy.yml --request 'GET /' --user anna@example.com --expect pass
  $ tunnel policy test hooks.yml --request 'POST /hook' --body-file hook.json --expect 403

Passwords, tokens and webhook signatures in the request are checked as on a
server. --user simulates a visitor who has signed in or sent a valid JWT. The
exit code is 1 if the result is not --expect.`;

const testCommand = (io: Io, finish: Finish): Command =>
  new Command('test')
    .description('Show how a policy handles a request, rule by rule')
    .argument('<file>', 'Policy file')
    .addOption(
      new Option('--request <method path>', "Method and path, such as 'GET /admin'")
        .argParser(askedRequest)
        .makeOptionMandatory(),
    )
    .option('--header <name: value>', 'Request header (repeatable)', repeated)
    .option('--address <ip>', 'IP address of the visitor', visitorAddress, '192.0.2.1')
    .option('--user <name>', 'Visitor who has signed in or sent a valid JWT')
    .option('--body-file <file>', 'File with the request body')
    .addOption(servicesOption())
    .option('--expect <pass|status>', 'Expected result; exit with 1 if it differs', expected)
    .option('--json', 'Print the result as JSON')
    .addHelpText('after', TEST_EXAMPLES)
    .action(async (file: string, flags: TestFlags) => {
      const verdict = await testPolicy(
        readPolicy(file, io),
        { protocol: 'http', services: flags.services },
        {
          ...flags.request,
          headers: (flags.header ?? []).map(headerOf),
          address: flags.address,
          user: flags.user,
          body: flags.bodyFile === undefined ? undefined : readBody(flags.bodyFile, io),
        },
        io.clock.now(),
      );
      const lines = flags.json === true ? [JSON.stringify(verdict)] : verdictLines(verdict, flags.request);
      io.stdout.write(`${lines.join('\n')}\n`);
      const { expect } = flags;
      if (expect === undefined || expect === (verdict.status ?? 'pass')) return finish(EXIT.endedAsAsked);
      io.stderr.write(`tunnel: expected ${expect}, got ${verdict.status ?? 'pass'}\n`);
      finish(EXIT.unexpected);
    });

/** Parses a request header. The error message does not repeat an invalid header, which can contain a password. */
const headerOf = (text: string): readonly [string, string] => {
  const [, name, value] = /^([^:\s]+):[ \t]*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw misuse("--header takes 'Name: value'.");
  return [name, value];
};

const readBody = (file: string, io: Io): Buffer => {
  try {
    return readFileSync(pathFrom(io.cwd, file, io.home));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw misuse(`cannot read ${file}: ${code === 'ENOENT' ? 'no such file' : (code ?? message)}.`);
  }
};

const verdictLines = (verdict: PolicyVerdict, { method }: AskedRequest): string[] => {
  const widest = Math.max(0, ...verdict.trace.map((rule) => titleOf(rule).length));
  return [
    ...verdict.trace.map((rule) => `${titleOf(rule).padEnd(widest)}  ${noteOf(rule)}`),
    verdict.request === null ? answerText(verdict) : `passes as ${method} ${verdict.request.path}${routeText(verdict)}`,
  ];
};

const titleOf = ({ index, name, action }: TracedRule): string => `${index} ${oneLine(name ?? action)}`;

const noteOf = ({ matched, note }: TracedRule): string => {
  if (matched) return oneLine(note);
  return note === 'not reached' ? note : `no match: ${oneLine(note)}`;
};

const routeText = ({ service }: PolicyVerdict): string => (service === null ? '' : ` to ${service}`);

const answerText = ({ status, code, rule, location }: PolicyVerdict): string => {
  const what = ['answered', status, code, location === null ? null : `to ${oneLine(location)}`].filter(
    (part) => part !== null,
  );
  if (rule === null) return `${what.join(' ')} by the sign-in flow`;
  return `${what.join(' ')} by rule ${rule.index}${rule.name === null ? '' : ` (${oneLine(rule.name)})`}`;
};

// ---- hash ----

const HASH_EXAMPLES = `
Examples:
  $ tunnel policy hash
  $ tunnel policy hash < password.txt`;

const hashCommand = (io: Io, finish: Finish): Command =>
  new Command('hash')
    .description('Hash a password for `users` in a policy')
    .addHelpText('after', HASH_EXAMPLES)
    .action(async () => {
      const password = io.stdin.isTTY === true ? await typedPassword(io) : await pipedPassword(io);
      if (password === '') throw misuse('the password is empty.');
      io.stdout.write(`${await hashPassword(password)}\n`);
      finish(EXIT.endedAsAsked);
    });

const typedPassword = (io: Io): Promise<string> =>
  withPrompt(io, 'Pipe the password: tunnel policy hash < password.txt', (prompt) => prompt.askSecret('Password: '));

const PASSWORD_MAX_BYTES = 4096;

const pipedPassword = async (io: Io): Promise<string> => {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of io.stdin) {
    parts.push(Buffer.from(part));
    bytes += Buffer.byteLength(part);
    if (bytes > PASSWORD_MAX_BYTES) throw misuse(`the password is longer than ${PASSWORD_MAX_BYTES} bytes.`);
  }
  return textOf(Buffer.concat(parts)).replace(/\r?\n$/, '');
};

/**
 * Decodes a password as UTF-8. Invalid text is rejected, because replacement characters would be hashed instead of the intended password,
 * and no visitor could sign in.
 */
const textOf = (bytes: Buffer): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw misuse('the password is not UTF-8 text.');
  }
};
