// Flags that create rules of a policy. The rules have a fixed order: denied networks, allowed networks, a rate limit, authentication,
// headers, then the rules of --policy. Secrets are read from files, because process lists show flags.
import { type ClientSpec, TunnelPolicy } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { PolicySource, readPolicySource } from '@tunnel/config/policy';
import { InvalidArgumentError, Option } from 'commander';
import type { Io } from '../io/io.ts';
import { misuse } from '../io/problem-report.ts';
import { OneLine } from './entries.ts';
import { FLAG_GROUPS } from './flags.ts';
import { repeated } from './tunnel-flags.ts';

/** Policy flags of every public tunnel. */
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
}

interface RateFlag {
  readonly requests: number;
  readonly per_secs: number;
}

/** Adds the comma-separated values of a flag to the values of its earlier uses. */
const several = (text: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  ...text.split(',').map((part) => part.trim()),
];

const rate = (text: string): RateFlag => {
  const [whole, requests, seconds] = /^(\d{1,7})\/(\d{1,5})$/.exec(text) ?? [];
  if (whole === undefined) throw new InvalidArgumentError('Use requests/seconds, such as 100/60.');
  return { requests: Number(requests), per_secs: Number(seconds) };
};

/**
 * Creates the rule flags of every public tunnel. Tunnels with requests also have the flags below. `--policy` itself is defined by an
 * option row.
 */
const connectionRules = (): Option[] => [
  ruleFlag('--allow-cidr <network>', 'Allow only these addresses (repeatable)', several),
  ruleFlag('--deny-cidr <network>', 'Reject these addresses (repeatable)', several),
];

const requestRules = (): Option[] => [
  ruleFlag('--basic-auth-file <file>', 'Require a password (file of name:password lines)'),
  ruleFlag('--service-token-file <file>', 'Let programs in with the token in this file (X-Tunnel-Token header)'),
  ruleFlag('--login <provider>', 'Require sign-in with this identity provider'),
  ruleFlag('--login-email <address>', 'With --login: allow only this person (repeatable)', several),
  ruleFlag('--login-domain <domain>', 'With --login: allow only this email domain (repeatable)', several),
  ruleFlag('--rate-limit <requests/seconds>', 'Maximum requests per address, e.g. 100/60 (100 per 60 s)', rate),
  ruleFlag('--request-header <name: value>', 'Set a request header for the service (repeatable)', repeated),
  ruleFlag('--response-header <name: value>', 'Set a response header for visitors (repeatable)', repeated),
];

const ruleFlag = <T>(flags: string, help: string, read?: (text: string, before: T) => T): Option => {
  const option = new Option(flags, help).helpGroup(FLAG_GROUPS.access);
  return read === undefined ? option : option.argParser(read);
};

/** Creates the flags for policy rules. `carriesRequests` adds the flags for requests, beside the flags for connections. */
export const guardOptions = (carriesRequests: boolean): Option[] => [
  ...connectionRules(),
  ...(carriesRequests ? requestRules() : []),
];

type PolicyIo = Pick<Io, 'env' | 'cwd' | 'home'>;

/** Returns the policy of a tunnel: the rules of the flags, then the rules of --policy. Throws a Fault or a ConfigProblem. */
export const guardSpecOf = (flags: HttpGuardFlags, io: PolicyIo): Pick<ClientSpec, 'policy'> => {
  const sources = policySourcesOf(flags, io);
  return sources.length === 0 ? {} : { policy: TunnelPolicy.of(sources) };
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

/** A rule with the keys of a policy file, and the flag named by error messages about the rule. */
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

/**
 * Returns a single rule for all methods of authentication, because a visitor needs only one method. Paths are absolute, because --save
 * writes the rule into a file in another folder.
 */
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

/** Creates the rule of a header flag. Error messages do not contain the typed value, because a header can be a secret. */
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

/**
 * Returns `policy` for config.yml: the rules of the flags, or the file given by --policy. Throws a Fault if both are given, because the
 * key holds only one value.
 */
export const guardEntryOf = (flags: HttpGuardFlags, io: PolicyIo): { readonly policy?: string | OneLine } => {
  const made = flagRules(flags, io);
  if (made.rules.length === 0)
    return flags.policy === undefined ? {} : { policy: pathFrom(io.cwd, flags.policy, io.home) };
  if (flags.policy !== undefined) throw misuse('--save takes either --policy or flags that add rules, not both.');
  return { policy: new OneLine(policyOfFlags(made)) };
};
