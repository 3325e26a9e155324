// What the rules say of one request, from the question to the end of its answer: where it goes, as what, with whose body, and what is done to the
// response. A request of a tunnel without rules has none of these.

import { fieldValueOf, type HeaderField, type OwnResponse, type RequestHead, type ResponseHead } from '@tunnel/http1';
import {
  type Answer,
  changedHead,
  notedHead,
  notedOwn,
  type Pass,
  type PolicyEvent,
  type PolicyRequest,
  type RequestChanges,
  type ResponseNote,
  type RuleRef,
  renderPolicyAnswer,
} from '@tunnel/policy';
import { randomId } from '@tunnel/runtime';
import type { ConnectionAuthCache } from '../../policy/connection-auth-cache.ts';
import type { HeldBody } from '../../policy/held-bodies.ts';
import type { EffectSubject } from '../../policy/policy-driver.ts';
import type { DecidedRequest, PolicyGate, PolicyInForce, PolicyOutcome } from '../../policy/policy-gate.ts';
import { PolicySubject } from '../../policy/policy-subject.ts';
import type { RouteDecision, RoutedRequest } from '../../routing/http-router.ts';
import type { CapturedRules } from '../../upstream/captured-rules.ts';
import { errorCodeOf } from './edge-answers.ts';
import type { ProxiedRequest } from './proxied-request.ts';

/** Whoever reads the visitor: it writes the request's body there as it comes, and says when it is whole. */
export interface BodyHolder {
  hold(held: HeldBody): void;
}

const NO_NOTES: readonly ResponseNote[] = [];
const EMPTY = Buffer.alloc(0);

/** It is the visitor's request as rules see it, too: nothing is copied, and one object fewer for each of many shows. */
export class RequestPolicy implements DecidedRequest, PolicyRequest {
  readonly #routed: RoutedRequest;
  readonly #inForce: PolicyInForce;
  /** As the visitor sent it. */
  readonly visitorsHead: RequestHead;
  readonly #holder: BodyHolder;
  readonly #owner: ProxiedRequest;
  #requestId: string | null = null;
  #subject: PolicySubject | null = null;
  #abort: AbortController | null = null;
  #held: HeldBody | null = null;
  /** null: it may not pass, or that is not known yet. */
  #pass: Pass | null = null;
  #isOver = false;

  constructor(
    routed: RoutedRequest,
    inForce: PolicyInForce,
    head: RequestHead,
    holder: BodyHolder,
    owner: ProxiedRequest,
  ) {
    this.#routed = routed;
    this.#inForce = inForce;
    this.visitorsHead = head;
    this.#holder = holder;
    this.#owner = owner;
  }

  // ---- the request, as rules see it ----

  get request(): PolicyRequest {
    return this;
  }

  get method(): string {
    return this.visitorsHead.method;
  }

  get path(): string {
    return this.visitorsHead.path;
  }

  get headers(): RequestHead['headers'] {
    return this.visitorsHead.headers;
  }

  get host(): string {
    return this.visitorsHead.host;
  }

  get authority(): string {
    return this.visitorsHead.authority;
  }

  get scheme(): 'http' | 'https' {
    return this.#routed.visitor.scheme;
  }

  get address(): string {
    return this.#routed.visitor.address;
  }

  get isUpgrade(): boolean {
    return this.visitorsHead.upgrade !== null;
  }

  get bodyLength(): number | null {
    return bodyLengthOf(this.visitorsHead);
  }

  /** Most rules never name it. */
  get requestId(): string {
    this.#requestId ??= randomId('req');
    return this.#requestId;
  }

  // ---- the question ----

  decide(gate: PolicyGate): RouteDecision | Promise<RouteDecision> {
    const outcome = gate.decide(this.#inForce, this);
    return outcome instanceof Promise ? this.#awaited(outcome) : this.#ruled(outcome);
  }

  async #awaited(outcome: Promise<PolicyOutcome>): Promise<RouteDecision> {
    try {
      return this.#ruled(await outcome);
    } catch (error) {
      // Of one whose visitor has left nobody wants to know.
      if (!this.#isOver) this.#owner.onDecisionFailed(error);
      throw error;
    }
  }

  get subject(): EffectSubject {
    this.#subject ??= new PolicySubject(this.#routed.route, this.#inForce.ofRoute, this);
    return this.#subject;
  }

  get authCache(): ConnectionAuthCache {
    return this.#owner.authCache;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isOver) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Once: the rules keep what they were given. */
  holdBody(maxBytes: number): PolicyEvent | Promise<PolicyEvent> {
    // There is nothing to wait for.
    if (this.bodyLength === 0) return { kind: 'body-held', body: EMPTY };
    const held = this.#owner.heldBodies.hold(maxBytes, this.#owner.now(), this.subject.tenant);
    this.#held = held;
    this.#holder.hold(held);
    return held.done;
  }

  #ruled(outcome: PolicyOutcome): RouteDecision {
    // Nothing waits any more: the end of the request need not wake anybody, which costs as much as a rule or ten.
    this.#abort = null;
    if (outcome.kind === 'pass') {
      this.#pass = outcome;
      return this.#routed;
    }
    this.#freeBody();
    const response = this.#responseOf(outcome);
    // Not reported: answers to visitors who have left, and the edge's own pages of a login, which are no requests to the service.
    const id = this.#isOver || this.isOfLogin ? undefined : this.#tell(outcome, response);
    // Only an error has it: other answers of rules are as their owner wrote them.
    if (id === undefined || errorCodeOf(response) === null) return { own: response };
    return { own: { ...response, headers: [...response.headers, ['x-request-id', id]] } };
  }

  #responseOf({ answer, notes }: Answer): OwnResponse {
    const accept = fieldValueOf(this.headers, 'accept');
    return noted(renderPolicyAnswer(answer, accept), notes);
  }

  #tell(outcome: Answer, response: OwnResponse): string | undefined {
    const rules = outcome.rule === null ? null : this.#capturedOf(outcome, null);
    return this.#owner.onAnswered(this.#routed.route, this.visitorsHead, rules, response);
  }

  // ---- what passes ----

  /** As its service gets it. */
  get head(): RequestHead {
    const changes = this.#changes;
    return changes === null ? this.visitorsHead : changedHead(this.visitorsHead, changes);
  }

  get #changes(): RequestChanges | null {
    const changes = this.#pass?.changes ?? null;
    // The edge has asked for the body itself: the service gets it whole.
    return this.#held !== null && this.visitorsHead.expectContinue ? withoutExpect(changes) : changes;
  }

  /** By the name that the client's own table has; null: the tunnel's own. */
  get serviceName(): string | null {
    return this.#pass?.changes?.service ?? null;
  }

  /** Bytes that its body may have. */
  get maxBody(): number | null {
    return this.#pass?.changes?.maxBody ?? null;
  }

  /** A token may stand in trailers, too. */
  get hidesTrailers(): boolean {
    return tokenHeadersOf(this.#inForce).length > 0;
  }

  /** As its service gets them. */
  trailersOf(trailers: readonly HeaderField[]): readonly HeaderField[] {
    const { operator, tunnel } = this.#inForce.lists;
    const isGuarded = (field: HeaderField): boolean =>
      (operator?.guarded.spelled(field) ?? tunnel?.guarded.spelled(field) ?? null) !== null;
    return trailers.some(isGuarded) ? trailers.filter((field) => !isGuarded(field)) : trailers;
  }

  /** null: it is not held, or was passed on. */
  get held(): HeldBody | null {
    return this.#held;
  }

  /** null: nothing of it is kept. */
  get rules(): CapturedRules | null {
    return this.#pass === null ? null : this.#capturedOf(this.#pass, this.#changes);
  }

  /** Paths of the edge itself: what is asked there is nobody's to look at. */
  get isOfLogin(): boolean {
    const { lists } = this.#inForce;
    return lists.tunnel?.login != null && LOGIN_PATHS.test(this.path);
  }

  /** For an answer of our own to a request that passed. */
  noted(response: OwnResponse): OwnResponse {
    return noted(response, this.#pass?.notes ?? NO_NOTES);
  }

  notedHead(head: ResponseHead): ResponseHead {
    const notes = this.#pass?.notes ?? NO_NOTES;
    return notes.length === 0 ? head : notedHead(head, notes);
  }

  /** It had passed, and the bound of its body is what answers it. */
  answeredLate(gate: PolicyGate, status: number): void {
    const inForce = this.#inForce;
    const bound = this.maxBody ?? Number.NaN;
    const rule = this.#pass?.matched.find((one) => maxBodyOf(one, inForce) === bound);
    if (rule !== undefined) gate.answeredLate(inForce, rule, status);
  }

  #capturedOf(outcome: PolicyOutcome, changes: RequestChanges | null): CapturedRules {
    const user = outcome.identity?.user ?? null;
    const policy =
      outcome.kind === 'answer' && outcome.rule !== null
        ? { answered_by: shownRule(outcome.rule), matched: indexesOf(outcome.matched), user }
        : { answered_by: null, matched: indexesOf(outcome.matched), user };
    return { policy, askedPath: this.path, secretFields: tokenHeadersOf(this.#inForce), changes };
  }

  // ---- the end ----

  /** Once a second: a body that is held is not waited for without end. */
  tick(nowMs: number): void {
    this.#held?.tick(nowMs);
  }

  /** The request is over, or its visitor has left: nothing is found out for it any more. */
  end(): void {
    this.#isOver = true;
    this.#abort?.abort();
    this.#freeBody();
  }

  #freeBody(): void {
    this.#held?.release();
    this.#held = null;
  }
}

/** In no spelling that may lead out of there: `/.tunnel/../x` is the service's, and shown. */
const LOGIN_PATHS = /^\/\.tunnel\/[\w/-]*(?:\?|$)/;

const noted = (response: OwnResponse, notes: readonly ResponseNote[]): OwnResponse =>
  notes.length === 0 ? response : notedOwn(response, notes);

/** null: it bounds no body. */
const maxBodyOf = ({ list, index }: RuleRef, { lists }: PolicyInForce): number | null => {
  const rule = lists[list]?.policy.rules[index - 1];
  return rule !== undefined && 'max_body' in rule ? rule.max_body : null;
};

/** 0 stands for those of the operator, which are nobody else's to look at. */
const shownRule = ({ list, index, name, action }: RuleRef): { index: number; name: string | null; action: string } =>
  list === 'operator' ? { index: 0, name: null, action } : { index, name, action };

/** Those of the tunnel. */
const indexesOf = (matched: readonly RuleRef[]): number[] => {
  let count = 0;
  for (const { list } of matched) if (list === 'tunnel') count += 1;
  const indexes = new Array<number>(count);
  let at = 0;
  for (const { list, index } of matched) {
    if (list !== 'tunnel') continue;
    indexes[at] = index;
    at += 1;
  }
  return indexes;
};

const NO_NAMES: readonly string[] = [];

const tokenHeadersOf = ({ lists: { operator, tunnel } }: PolicyInForce): readonly string[] => {
  const operators = operator?.tokenHeaders ?? NO_NAMES;
  const tunnels = tunnel?.tokenHeaders ?? NO_NAMES;
  if (operators.length === 0) return tunnels;
  return tunnels.length === 0 ? operators : [...operators, ...tunnels];
};

const NO_CHANGES: RequestChanges = {
  path: null,
  service: null,
  remove: [],
  removeSpellings: [],
  cookie: null,
  set: [],
  add: [],
  maxBody: null,
};

const withoutExpect = (changes: RequestChanges | null): RequestChanges => {
  const given = changes ?? NO_CHANGES;
  return { ...given, remove: [...given.remove, 'expect'] };
};

const bodyLengthOf = ({ framing }: RequestHead): number | null => {
  if (framing.kind === 'length') return framing.length;
  return framing.kind === 'none' ? 0 : null;
};
