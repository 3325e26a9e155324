// The head of a request as the rules want the service to see it: other fields, another path. Everything else is as it was read.
import { eachListItem } from '../http1/characters.ts';
import { type HeaderField, linesOf, PartField, roleOf } from '../http1/fields.ts';
import type { RequestHead } from '../http1/request-head.ts';
import { FieldNames, isField } from './field-names.ts';
import type { HeaderPair, RequestChanges } from './policy-step.ts';

/**
 * The same head where nothing of it changes. Fields that `Connection` names are left out here already, and the names with them: later they
 * could take away what a rule has set, or what says who the visitor is.
 */
export const changedHead = (head: RequestHead, changes: RequestChanges): RequestHead => {
  if (!changesHead(changes)) return head;
  const path = changes.path ?? head.path;
  const headers = changedFields(head, changes);
  let text: string | null = null;
  return {
    kind: 'request',
    get text(): string {
      text ??= `${head.method} ${path} HTTP/${head.version}\r\n${linesOf(headers)}\r\n`;
      return text;
    },
    method: head.method,
    target: path,
    path,
    version: head.version,
    headers,
    host: head.host,
    authority: head.authority,
    framing: head.framing,
    keepAlive: head.keepAlive,
    upgrade: head.upgrade,
    expectContinue: head.expectContinue,
    teTrailers: head.teTrailers,
    connectionNames: null,
  };
};

const changesHead = ({ path, remove, removeSpellings, cookie, set, add }: RequestChanges): boolean =>
  path !== null ||
  cookie !== null ||
  remove.length > 0 ||
  removeSpellings.length > 0 ||
  set.length > 0 ||
  add.length > 0;

/** All parts: the text that lines are cut out of still has what goes. */
const changedFields = (head: RequestHead, changes: RequestChanges): PartField[] => {
  const { cookie, set, add } = changes;
  const gone = new FieldNames([...changes.remove, ...set.map(([name]) => name.toLowerCase())]);
  const spellings = new FieldNames(changes.removeSpellings);
  const fields: PartField[] = [];
  // A target that names another host overrules Host, and the target is a path from here on.
  const isAbsolute = !head.target.startsWith('/') && head.target !== '*';
  if (isAbsolute) fields.push(new PartField('Host', head.authority, 'host'));
  let isCookieDone = false;
  for (const field of head.headers) {
    if (gone.has(field) || spellings.spelled(field) !== null || isNamed(field, head)) continue;
    if (field.role === 'host' && isAbsolute) continue;
    if (field.role === 'connection') pushConnection(field, fields);
    else if (cookie === null || !isField(field, 'cookie')) fields.push(partOf(field));
    else if (!isCookieDone) {
      isCookieDone = true;
      if (cookie !== '') fields.push(new PartField(field.name, cookie, field.role));
    }
  }
  for (const pair of set) fields.push(ruleField(pair));
  for (const pair of add) fields.push(ruleField(pair));
  return fields;
};

const partOf = (field: HeaderField): PartField =>
  field instanceof PartField ? field : new PartField(field.name, field.value, field.role);

const isNamed = (field: HeaderField, { connectionNames }: RequestHead): boolean =>
  connectionNames !== null && field.role === 'ordinary' && connectionNames.includes(field.lower);

const CONNECTION_OPTIONS: ReadonlySet<string> = new Set(['close', 'keep-alive', 'upgrade', 'te']);

/** What it says of the connection itself stays. */
const pushConnection = (field: HeaderField, fields: PartField[]): void => {
  const kept: string[] = [];
  eachListItem(field.value, (option) => {
    if (CONNECTION_OPTIONS.has(option.toLowerCase())) kept.push(option);
  });
  if (kept.length > 0) fields.push(new PartField(field.name, kept.join(', '), 'connection'));
};

/** A claim that the owner makes is no visitor's: it passes. What the edge writes itself is not the owner's to write. */
const ruleField = ([name, value]: HeaderPair): PartField => {
  const role = roleOf(name);
  return new PartField(name, value, role === 'claim' ? 'ordinary' : role);
};
