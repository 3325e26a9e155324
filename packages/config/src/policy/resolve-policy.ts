// Converts a written policy to the form sent to the edge: reads secrets from files and variables, hashes tokens and reads page files.
// Passwords are returned separately, because hashing passwords is slow. Missing or oversized values are rejected with their line; no
// error message contains a secret.

import { statSync } from 'node:fs';
import { POLICY_BOUNDS } from '@tunnel/policy';
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { Secret, sha256Hex } from '@tunnel/runtime';
import { readBounded } from '../layers/bounded-file.ts';
import { readSecretText } from '../layers/entry-secret.ts';
import type { PolicySource } from './policy-source.ts';

export type PolicyPath = readonly (string | number)[];

type Table = Readonly<Record<string, unknown>>;

/** A password that has not been hashed yet. */
export interface PlainPassword {
  /** Index of the password's rule in the policy as sent, counted from 0. */
  readonly rule: number;
  readonly user: string;
  readonly password: Secret;
}

interface ResolvedPolicy {
  readonly login: Table | null;
  readonly rules: readonly Table[];
  readonly passwords: readonly PlainPassword[];
}

/** Resolves a policy that the schema has accepted. Throws a ConfigProblem. */
export const resolvePolicy = (login: Table | null, rules: readonly Table[], at: PolicyOutline): ResolvedPolicy => {
  const passwords: PlainPassword[] = [];
  const resolved = rules.map((rule, index) => resolveRule(rule, index, at, passwords));
  return { login: login === null ? null : resolveLogin(login, at), rules: resolved, passwords };
};

/** The source of a policy, the paths of its rules in the source, and the placeholder for passwords. */
interface PolicyOutline {
  readonly source: PolicySource;
  rule(index: number): PolicyPath;
  /** Placeholder for the line of a password that has not been hashed yet. */
  readonly unmadeLine: string;
}

const resolveLogin = (login: Table, { source }: PolicyOutline): Table => {
  const { client_secret: text, client_secret_file: file, client_secret_env: variable, ...rest } = login;
  const given = { name: 'client_secret', word: 'client secret', text, file, variable };
  const secret = readSecret(source, ['login'], given);
  return { ...rest, ...(secret === null ? {} : { client_secret: secret.reveal() }) };
};

const resolveRule = (rule: Table, index: number, at: PolicyOutline, passwords: PlainPassword[]): Table => {
  const path = at.rule(index);
  const { source } = at;
  const auth = tableOf(rule['auth']);
  if (auth !== null) return { ...rule, auth: resolveAuth(auth, [...path, 'auth'], index, at, passwords) };
  const webhook = tableOf(rule['verify_webhook']);
  if (webhook !== null)
    return { ...rule, verify_webhook: resolveWebhook(webhook, [...path, 'verify_webhook'], source) };
  for (const action of ['respond', 'error_page'] as const) {
    const page = tableOf(rule[action]);
    if (page !== null) return { ...rule, [action]: resolvePage(page, [...path, action], at) };
  }
  return rule;
};

const tableOf = (value: unknown): Table | null =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Table) : null;

const resolveAuth = (
  auth: Table,
  path: PolicyPath,
  rule: number,
  at: PolicyOutline,
  passwords: PlainPassword[],
): Table => {
  const basic = tableOf(auth['basic']);
  const tokens = auth['tokens'];
  return {
    ...auth,
    ...(basic === null ? {} : { basic: resolveBasic(basic, [...path, 'basic'], rule, at, passwords) }),
    ...(Array.isArray(tokens)
      ? { tokens: tokens.map((token: Table, index) => resolveToken(token, [...path, 'tokens', index], at)) }
      : {}),
  };
};

// ---- users ----

const resolveBasic = (
  { users, users_file: file, ...rest }: Table,
  path: PolicyPath,
  rule: number,
  at: PolicyOutline,
  passwords: PlainPassword[],
): Table => {
  const { source, unmadeLine } = at;
  const given = Object.entries((users ?? {}) as Readonly<Record<string, string>>);
  const listed = typeof file === 'string' ? readUsers(at, [...path, 'users_file'], file) : [];
  const lines: Record<string, string> = {};
  for (const [user, password] of [...given, ...listed]) {
    // `in` also matches inherited properties such as `toString`, so user names of this kind are rejected too.
    if (user in lines) {
      throw source.refuse(
        [...path, 'users_file'],
        'a file with no user name that is also in `users`',
        JSON.stringify(user),
      );
    }
    const isMade = password.startsWith('$scrypt$');
    if (!isMade) passwords.push({ rule, user, password: new Secret(password) });
    lines[user] = isMade ? password : unmadeLine;
  }
  return { ...rest, users: lines };
};

/** Reads users from a file with lines `name:password`. Empty lines and lines that begin with # are ignored. */
const readUsers = ({ source }: PolicyOutline, path: PolicyPath, file: string): [user: string, password: string][] => {
  const expected = 'a file with lines name:password';
  const refuse = (reason: string) => source.refuse(path, expected, `${JSON.stringify(file)}: ${reason}`);
  const answer = readSecretText(source.pathOf(file));
  if ('reason' in answer) throw refuse(answer.reason);
  const names = new Set<string>();
  const users: [string, string][] = [];
  for (const [index, line] of answer.secret.reveal().split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const colon = line.indexOf(':');
    const user = line.slice(0, colon);
    if (colon < 1 || colon === line.length - 1) throw refuse(`line ${index + 1} is not name:password`);
    if (names.has(user)) throw refuse(`line ${index + 1} repeats a user`);
    const password = line.slice(colon + 1);
    const most = RULE_LIMITS.PASSWORD_MAX_BYTES;
    if (Buffer.byteLength(password) > most)
      throw refuse(`the password in line ${index + 1} is longer than ${most} bytes`);
    names.add(user);
    users.push([user, password]);
  }
  if (users.length === 0) throw refuse('the file has no such line');
  return users;
};

// ---- secrets ----

interface Given {
  readonly name: string;
  readonly word: string;
  readonly text: unknown;
  readonly file: unknown;
  readonly variable: unknown;
}

/**
 * Reads a secret from its text, file or variable, of which at most one is set. The trailing line break of a file is removed. Returns null
 * if no key is set.
 */
const readSecret = (source: PolicySource, path: PolicyPath, given: Given): Secret | null => {
  const { name, word, text, file, variable } = given;
  if (typeof variable === 'string') {
    const value = source.env[variable] ?? '';
    if (value !== '') return new Secret(value);
    // A user may have put the secret here instead of the variable's name, so the message shows only text that looks like a variable name.
    const got = `${/^[A-Z_][A-Z0-9_]{0,63}$/.test(variable) ? JSON.stringify(variable) : 'one'}, which is not set`;
    throw source.refuse([...path, `${name}_env`], `the name of an environment variable with the ${word}`, got);
  }
  if (typeof file === 'string') {
    const answer = readSecretText(source.pathOf(file));
    if ('secret' in answer) return new Secret(answer.secret.reveal().replace(/\r?\n$/, ''));
    const got = `${JSON.stringify(file)}: ${answer.reason}`;
    throw source.refuse([...path, `${name}_file`], `a file with the ${word}`, got);
  }
  return typeof text === 'string' ? new Secret(text) : null;
};

const resolveToken = (written: Table, path: PolicyPath, { source }: PolicyOutline): Table => {
  const { token: text, token_file: file, token_env: variable, sha256, ...rest } = written;
  const token = readSecret(source, path, { name: 'token', word: 'token', text, file, variable });
  if (token === null) return { ...rest, sha256 };
  const { POLICY_TOKEN_MIN_CHARS: least, POLICY_TOKEN_MAX_CHARS: most } = POLICY_BOUNDS;
  const plain = token.reveal();
  if (!/^[!-~]+$/.test(plain) || plain.length < least || plain.length > most) {
    const key = ['token', 'token_file', 'token_env'].find((name) => written[name] !== undefined) ?? 'token';
    const got = /^[!-~]*$/.test(plain) ? `one of ${plain.length}` : 'another one';
    throw source.refuse([...path, key], `a token of ${least} to ${most} visible ASCII characters`, got);
  }
  return { ...rest, sha256: sha256Hex(plain) };
};

const resolveWebhook = (written: Table, path: PolicyPath, source: PolicySource): Table => {
  const { secret: text, secret_file: file, secret_env: variable, secrets, ...rest } = written;
  const secret = readSecret(source, path, { name: 'secret', word: 'secret', text, file, variable });
  return { ...rest, secrets: secret === null ? secrets : [secret.reveal()] };
};

// ---- pages ----

const resolvePage = (page: Table, path: PolicyPath, { source }: PolicyOutline): Table => {
  const { body_file: file, ...rest } = page;
  if (typeof file !== 'string') return page;
  const key = [...path, 'body_file'];
  const most = POLICY_BOUNDS.POLICY_BODY_MAX_BYTES;
  const answer = readPage(source.pathOf(file), most);
  if ('body' in answer) return { ...rest, body: answer.body };
  const expected = `a file of UTF-8 text of at most ${most} bytes`;
  throw source.refuse(key, expected, `${JSON.stringify(file)}: ${answer.reason}`);
};

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text',
};

const readPage = (file: string, most: number): { readonly body: string } | { readonly reason: string } => {
  try {
    const { size } = statSync(file);
    // Checks the size before reading, because a log file of gigabytes is surely not a page.
    if (size > most) return { reason: `it has ${size} bytes` };
    return { body: new TextDecoder('utf-8', { fatal: true }).decode(readBounded(file, most)) };
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    return { reason: REASONS[code] ?? message };
  }
};
