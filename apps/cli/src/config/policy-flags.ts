// The flags that say who may visit a tunnel, and the rules that they make, in one order: denied networks, allowed ones, a rate limit, who may come in,
// headers; then those of --policy. Secrets are in files: a process list shows what is typed.
import { TunnelPolicy, type TunnelSpec } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { PolicySource, readPolicySource } from '@tunnel/config/policy';
import { type Command, InvalidArgumentError } from 'commander';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { OneLine } from './entries.ts';
import { FLAG_GROUPS } from './flags.ts';

/** Of every public tunnel. */
export interface GuardFlags {
  readonly policy?: string;
  readonly allowCidr?: readonly string[];
  readonly denyCidr?: readonly string[];
}

export interface HttpGuardFlags extends GuardFlags {
  readonly basicAuthFile?: string;
  readonly serviceTokenFile?: string;
  readonly login?: string;
  readonly loginEmail?: readonly string[];
  readonly loginDomain?: readonly string[];
  readonly rateLimit?: RateFlag;
  readonly requestHeader?: readonly string[];
  readonly responseHeader?: readonly string[];
  readonly service?: readonly string[];
}

interface RateFlag {
  readonly requests: number;
  readonly per_secs: number;
}

/** Given again it says more; so does a comma. */
const several = (text: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  ...text.split(',').map((part) => part.trim()),
];

/** Given again it says more; a comma is part of it. */
export const repeated = (text: string, before: readonly string[] = []): readonly string[] => [...before, text];

const rate = (text: string): RateFlag => {
  const [whole, requests, seconds] = /^(\d{1,7})\/(\d{1,5})$/.exec(text) ?? [];
  if (whole === undefined) throw new InvalidArgumentError('Use requests/seconds, such as 100/60.');
  return { requests: Number(requests), per_secs: Number(seconds) };
};

export const addGuardFlags = (command: Command): Command =>
  command
    .optionsGroup(FLAG_GROUPS.access)
    .option('--policy <file>', 'File with rules for visitors and requests')
    .option('--allow-cidr <network>', 'Allow only these addresses (repeatable)', several)
    .option('--deny-cidr <network>', 'Reject these addresses (repeatable)', several);

export const addHttpGuardFlags = (command: Command): Command =>
  addGuardFlags(command)
    .option('--basic-auth-file <file>', 'Ask for a password (file of name:password lines)')
    .option('--service-token-file <file>', 'Allow programs that send the token in this file as X-Tunnel-Token')
    .option('--login <provider>', 'Require sign-in with a provider of the edge')
    .option('--login-email <address>', 'With --login: only this person (repeatable)', several)
    .option('--login-domain <domain>', 'With --login: people of this e-mail domain (repeatable)', several)
    .option('--rate-limit <requests/seconds>', 'Maximum requests per address, such as 100/60', rate)
    .option('--request-header <name: value>', 'Header that the service gets (repeatable)', repeated)
    .option('--response-header <name: value>', 'Header that visitors get (repeatable)', repeated)
    .option('--service <name=port>', 'Local service for `route` in the policy (repeatable)', repeated);

type PolicyIo = Pick<Io, 'env' | 'cwd' | 'home'>;

/** What they say of a tunnel. Throws a Fault or a ConfigProblem. */
export const guardSpecOf = (flags: HttpGuardFlags, io: PolicyIo): Pick<TunnelSpec, 'policy' | 'services'> => {
  const sources = policySourcesOf(flags, io);
  return {
    ...(sources.length === 0 ? {} : { policy: TunnelPolicy.of(sources) }),
    ...(flags.service === undefined ? {} : { services: servicesOf(flags.service) }),
  };
};

const policySourcesOf = (flags: HttpGuardFlags, io: PolicyIo): PolicySource[] => {
  const made = flagRules(flags, io);
  const { env, home } = io;
  const { policy: shown } = flags;
  return [
    ...(made.rules.length === 0 ? [] : [flagSource(flags, made, io)]),
    ...(shown === undefined ? [] : [readPolicySource({ file: pathFrom(io.cwd, shown, home), shown, env, home })]),
  ];
};

/** By the keys of a policy file; `flag`: what made it, for refusals. */
interface FlagRule {
  readonly rule: Readonly<Record<string, unknown>>;
  readonly flag: string;
}

interface MadeRules {
  readonly login: { readonly provider: string } | null;
  readonly rules: readonly FlagRule[];
}

const flagRules = (flags: HttpGuardFlags, io: PolicyIo): MadeRules => {
  const { denyCidr, allowCidr, rateLimit, requestHeader, responseHeader, login } = flags;
  const auth = authOf(flags, io);
  const rules: FlagRule[] = [
    ...(denyCidr === undefined ? [] : [{ rule: { match: { address: denyCidr }, deny: true }, flag: '--deny-cidr' }]),
    ...(allowCidr === undefined ? [] : [{ rule: { allow_addresses: allowCidr }, flag: '--allow-cidr' }]),
    ...(rateLimit === undefined ? [] : [{ rule: { rate_limit: rateLimit }, flag: '--rate-limit' }]),
    ...(auth === null ? [] : [{ rule: { auth }, flag: '--login' }]),
    ...headerRule('request_headers', '--request-header', requestHeader),
    ...headerRule('response_headers', '--response-header', responseHeader),
  ];
  return { login: login === undefined ? null : { provider: login }, rules };
};

/** One rule: its methods are alternatives. Paths are whole: the rule may be written into a file elsewhere. */
const authOf = (flags: HttpGuardFlags, io: PolicyIo): object | null => {
  const { basicAuthFile, serviceTokenFile, login, loginEmail: emails, loginDomain: domains } = flags;
  const pathOf = (file: string): string => pathFrom(io.cwd, file, io.home);
  if (login === undefined && emails !== undefined) throw misuse('--login-email needs --login.');
  if (login === undefined && domains !== undefined) throw misuse('--login-domain needs --login.');
  const people = emails === undefined && domains === undefined ? { anyone: true } : { emails, domains };
  const auth = {
    ...(basicAuthFile === undefined ? {} : { basic: { users_file: pathOf(basicAuthFile) } }),
    ...(serviceTokenFile === undefined ? {} : { tokens: [{ name: 'service', token_file: pathOf(serviceTokenFile) }] }),
    ...(login === undefined ? {} : { login: withoutNothing(people) }),
  };
  return Object.keys(auth).length === 0 ? null : auth;
};

const withoutNothing = (table: object): object =>
  Object.fromEntries(Object.entries(table).filter(([, value]) => value !== undefined));

/** What was typed is not repeated: a header may be a secret. */
const headerRule = (action: string, flag: string, given: readonly string[] | undefined): FlagRule[] => {
  if (given === undefined) return [];
  const set: Record<string, string> = {};
  for (const text of given) {
    const [, name = '', value = ''] = /^([^:\s]+):[ \t]*(.*)$/.exec(text) ?? [];
    if (name === '') throw misuse(`${flag} takes 'Name: value'.`);
    if (Object.hasOwn(set, name)) throw misuse(`${flag} names ${name} twice.`);
    Object.defineProperty(set, name, { value, enumerable: true });
  }
  return [{ rule: { [action]: { set } }, flag }];
};

const servicesOf = (given: readonly string[]): Record<string, string> => {
  const services: Record<string, string> = {};
  for (const text of given) {
    const [, name = '', address = ''] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (name === '') throw misuse(`'${text}' is no service. Use --service name=port or name=host:port.`);
    if (Object.hasOwn(services, name)) throw misuse(`--service names ${name} twice.`);
    services[name] = address;
  }
  return services;
};

const AUTH_FLAGS: Readonly<Record<string, string>> = {
  basic: '--basic-auth-file',
  tokens: '--service-token-file',
  login: '--login',
};
const PEOPLE_FLAGS: Readonly<Record<string, string>> = { emails: '--login-email', domains: '--login-domain' };

const flagSource = (flags: HttpGuardFlags, made: MadeRules, { cwd, env, home }: PolicyIo): PolicySource =>
  new PolicySource({
    value: policyOfFlags(made),
    file: null,
    line: () => 0,
    key: ([head, index, , method, people]) => {
      if (head === 'login') return '--login';
      const flag = made.rules[Number(index)]?.flag ?? '--policy';
      if (flag !== '--login') return flag;
      const byMethod = PEOPLE_FLAGS[String(people)] ?? AUTH_FLAGS[String(method)];
      return byMethod ?? (flags.login === undefined ? '--basic-auth-file' : flag);
    },
    name: 'command line',
    folder: cwd,
    env,
    home,
  });

const policyOfFlags = ({ login, rules }: MadeRules): object => {
  const list = rules.map(({ rule }) => rule);
  return login === null ? { rules: list } : { login, rules: list };
};

/** The same for config.yml: what the flags say, or the file that they name. Throws a Fault for what one key cannot hold. */
export const guardEntryOf = (
  flags: HttpGuardFlags,
  io: PolicyIo,
): { readonly policy?: string | OneLine; readonly services?: Readonly<Record<string, string>> } => {
  const made = flagRules(flags, io);
  const services = flags.service === undefined ? {} : { services: servicesOf(flags.service) };
  if (flags.policy === undefined) {
    return { ...(made.rules.length === 0 ? {} : { policy: new OneLine(policyOfFlags(made)) }), ...services };
  }
  if (made.rules.length > 0) throw misuse('--save takes --policy, or flags that make rules, not both.');
  return { policy: pathFrom(io.cwd, flags.policy, io.home), ...services };
};
