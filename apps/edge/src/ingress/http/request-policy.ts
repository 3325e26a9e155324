// Policy state of a request, from the decision to the end of the response: destination, changed head, buffered body, and response changes.
// Exists only for requests to tunnels with a policy.

import { type EdgeResponse, fieldValueOf, type HeaderField, type RequestHead, type ResponseHead } from '@tunnel/http1';
import {
  type Answer,
  applyRequestChanges,
  editedEdgeResponse,
  editedHead,
  type Pass,
  type PolicyEvent,
  type PolicyRequest,
  type RequestChanges,
  type ResponseEdit,
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
import { errorCodeOf, ruleText } from './edge-answers.ts';
import type { ProxiedRequest } from './proxied-request.ts';

/** Reader of the visitor's connection. Writes the request's body to the buffer as it arrives, and reports the end of the body. */
export interface BodyHolder {
  hold(held: HeldBody): void;
}

const NO_EDITS: readonly ResponseEdit[] = [];
const EMPTY = Buffer.alloc(0);

/**
 * Policy state of a request. Also implements PolicyRequest, so that no second object is allocated per request (measurable at high request
 * rates).
 */
export class RequestPolicy implements DecidedRequest, PolicyRequest {
  readonly #routed: RoutedRequest;
  readonly #inForce: PolicyInForce;
  /** Request head as sent by the visitor. */
  readonly visitorsHead: RequestHead;
  readonly #holder: BodyHolder;
  readonly #owner: ProxiedRequest;
  #requestId: string | null = null;
  #subject: PolicySubject | null = null;
  #abort: AbortController | null = null;
  #held: HeldBody | null = null;
  /** Decision that lets the request pass. Null while the decision is pending, or if the request was rejected. */
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

  // ---- PolicyRequest ----

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

  /** Request id, generated on first use because most rules never need it. */
  get requestId(): string {
    this.#requestId ??= randomId('req');
    return this.#requestId;
  }

  // ---- decision ----

  decide(gate: PolicyGate): RouteDecision | Promise<RouteDecision> {
    const outcome = gate.decide(this.#inForce, this);
    return outcome instanceof Promise ? this.#awaited(outcome) : this.#ruled(outcome);
  }

  async #awaited(outcome: Promise<PolicyOutcome>): Promise<RouteDecision> {
    try {
      return this.#ruled(await outcome);
    } catch (error) {
      // Errors of a policy are not reported after the visitor has disconnected.
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

  /** Buffers the body for the policy. Called at most once, because the policy keeps the result. */
  holdBody(maxBytes: number): PolicyEvent | Promise<PolicyEvent> {
    // An empty request body is available at once, without buffering.
    if (this.bodyLength === 0) return { kind: 'body-held', body: EMPTY };
    const held = this.#owner.heldBodies.hold(maxBytes, this.#owner.now(), this.subject.tenant);
    this.#held = held;
    this.#holder.hold(held);
    return held.done;
  }

  #ruled(outcome: PolicyOutcome): RouteDecision {
    // Nothing waits for the signal any more. Dropping the controller saves an abort at the end of the request, which costs as much as one
    // to ten rules.
    this.#abort = null;
    if (outcome.kind === 'pass') {
      this.#pass = outcome;
      return this.#routed;
    }
    this.#freeBody();
    const response = this.#responseOf(outcome);
    // Two kinds of answers are not reported: answers to visitors who have disconnected, and the edge's login pages, which are not requests
    // to the service.
    const id = this.#isOver || this.isOfLogin ? undefined : this.#tell(outcome, response);
    // Only errors carry the request id. Other answers of rules are sent exactly as their owner wrote them.
    if (id === undefined || errorCodeOf(response) === null) return { response };
    return { response: { ...response, headers: [...response.headers, ['x-request-id', id]] } };
  }

  #responseOf({ answer, edits }: Answer): EdgeResponse {
    const accept = fieldValueOf(this.headers, 'accept');
    return applyEdits(renderPolicyAnswer(answer, accept), edits);
  }

  #tell(outcome: Answer, response: EdgeResponse): string | undefined {
    const rules = outcome.rule === null ? null : this.#capturedOf(outcome, null);
    return this.#owner.onAnswered(this.#routed.route, this.visitorsHead, rules, response);
  }

  // ---- requests that pass ----

  /** Request head as sent to the service, with the policy's changes. */
  get head(): RequestHead {
    const changes = this.#changes;
    return changes === null ? this.visitorsHead : applyRequestChanges(this.visitorsHead, changes);
  }

  get #changes(): RequestChanges | null {
    const changes = this.#pass?.changes ?? null;
    // The edge has already sent 100 Continue to get the body, so the service gets the body without Expect.
    return this.#held !== null && this.visitorsHead.expectContinue ? withoutExpect(changes) : changes;
  }

  /** Name of the service in the client's table, or null for the tunnel's default service. */
  get serviceName(): string | null {
    return this.#pass?.changes?.service ?? null;
  }

  /** Maximum size of the request body in bytes, set by the policy. Null without a limit. */
  get maxBody(): number | null {
    return this.#pass?.changes?.maxBody ?? null;
  }

  /** Whether request trailers must be filtered, because a token can be sent in trailers too. */
  get hidesTrailers(): boolean {
    return tokenHeadersOf(this.#inForce).length > 0;
  }

  /** Returns the request's trailers as sent to the service. */
  trailersOf(trailers: readonly HeaderField[]): readonly HeaderField[] {
    const { operator, tunnel } = this.#inForce.lists;
    const isGuarded = (field: HeaderField): boolean =>
      (operator?.guarded.spelled(field) ?? tunnel?.guarded.spelled(field) ?? null) !== null;
    return trailers.some(isGuarded) ? trailers.filter((field) => !isGuarded(field)) : trailers;
  }

  /** Buffered body. Null if the body was not buffered, or has been freed. */
  get held(): HeldBody | null {
    return this.#held;
  }

  /** Policy details for the capture. Null if the request did not pass the policy. */
  get rules(): CapturedRules | null {
    return this.#pass === null ? null : this.#capturedOf(this.#pass, this.#changes);
  }

  /** Whether the path is a login path of the edge. Requests to login paths are neither captured nor reported. */
  get isOfLogin(): boolean {
    const { lists } = this.#inForce;
    return lists.tunnel?.login != null && LOGIN_PATHS.test(this.path);
  }

  /** Applies the policy's changes to an edge response to a request that passed. */
  applyToResponse(response: EdgeResponse): EdgeResponse {
    return applyEdits(response, this.#pass?.edits ?? NO_EDITS);
  }

  applyToHead(head: ResponseHead): ResponseHead {
    const edits = this.#pass?.edits ?? NO_EDITS;
    return edits.length === 0 ? head : editedHead(head, edits);
  }

  /**
   * Counts a request that passed the policy but was answered later because its body exceeded the limit of a rule. Returns the rule as shown
   * to the tunnel's owner, or null.
   */
  answeredLate(gate: PolicyGate, status: number): string | null {
    const inForce = this.#inForce;
    const bound = this.maxBody ?? Number.NaN;
    const rule = this.#pass?.matched.find((one) => maxBodyOf(one, inForce) === bound);
    if (rule === undefined) return null;
    gate.answeredLate(inForce, rule, status);
    return ruleText(shownRule(rule));
  }

  #capturedOf(outcome: PolicyOutcome, changes: RequestChanges | null): CapturedRules {
    const user = outcome.identity?.user ?? null;
    const policy =
      outcome.kind === 'answer' && outcome.rule !== null
        ? { answered_by: shownRule(outcome.rule), matched: indexesOf(outcome.matched), user }
        : { answered_by: null, matched: indexesOf(outcome.matched), user };
    return { policy, askedPath: this.path, secretFields: tokenHeadersOf(this.#inForce), changes };
  }

  // ---- ticks and end ----

  /** Enforces the time limit for buffering a request body. Called once a second. */
  tick(nowMs: number): void {
    this.#held?.tick(nowMs);
  }

  /** Ends the policy's part of a request, also after a disconnect. Pending lookups are aborted. */
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

/** Strict pattern, so that no spelling escapes the folder: `/.tunnel/../x` belongs to the service and is captured. */
const LOGIN_PATHS = /^\/\.tunnel\/[\w/-]*(?:\?|$)/;

const applyEdits = (response: EdgeResponse, edits: readonly ResponseEdit[]): EdgeResponse =>
  edits.length === 0 ? response : editedEdgeResponse(response, edits);

/** Returns the body size limit of a rule. Returns null if the rule does not limit the body. */
const maxBodyOf = ({ list, index }: RuleRef, { lists }: PolicyInForce): number | null => {
  const rule = lists[list]?.policy.rules[index - 1];
  return rule !== undefined && 'max_body' in rule ? rule.max_body : null;
};

/** Operator rules are shown as index 0 without a name, because tunnel owners must not see them. */
const shownRule = ({ list, index, name, action }: RuleRef): { index: number; name: string | null; action: string } =>
  list === 'operator' ? { index: 0, name: null, action } : { index, name, action };

/** Returns the indexes of the tunnel's rules that matched, without rules of the operator. */
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
