// Evaluates the rules for a request from top to bottom: the operator's list, then the tunnel's. The first answer ends the evaluation. An
// effect suspends it at the current rule. A rule that cannot be decided answers and never passes.

import { Fault } from '@tunnel/errors';
import type { CompiledAction, CompiledPolicy, CompiledRule } from '../compile/compile.ts';
import { MatchedRules } from '../compile/matched-rules.ts';
import {
  answerOfFault,
  faultAnswer,
  isAnswer,
  redirectAnswer,
  setsEdgeCookie,
  TOO_LONG,
} from '../compile/policy-answers.ts';
import { corsEdit, isPreflight, preflightResponse } from '../edits/cors.ts';
import { editsForLogin, GUARD_ONLY, orderedEdits } from '../edits/edit-order.ts';
import { type FillRoom, redirectTarget } from '../edits/placeholders.ts';
import { ChangeDraft, guardedIn } from '../edits/request-changes.ts';
import { type PathPrefixes, rewrittenPath } from '../edits/rewrite-path.ts';
import { cookieForService } from '../login/login-cookies.ts';
import { RequestReadings } from '../match/path-readings.ts';
import type {
  Identity,
  LoggedIn,
  Pass,
  PolicyAnswer,
  PolicyEffect,
  PolicyEvent,
  PolicyRequest,
  PolicyState,
  PolicyStep,
  RequestChanges,
  ResponseEdit,
  RuleRef,
} from '../policy-step.ts';
import { AuthRun, type AuthStep, type SessionHolder } from './auth-run.ts';
import { limiterKeyOf } from './limiter-key.ts';
import { answerLoginPath, type LoginPath, matchLoginPath, resumeLoginPath } from './login-paths.ts';
import { type HashRoom, type WebhookCheck, webhookCheck } from './webhook-signatures.ts';

/** Maximum bytes hashed for the signatures of a request, over all rules and secrets: a few milliseconds. Further secrets are not tried. */
export const POLICY_HASHED_MAX_BYTES = 10 * 1024 * 1024;
/** Maximum characters that placeholders expand to in a request, over all rules. Beyond it the visitor gets a 431. */
export const POLICY_FILLED_MAX_CHARS = 64 * 1024;

/** Policies in evaluation order. `allow` ends only its list, so that a tunnel cannot loosen the operator's rules. */
export interface PolicyLists {
  readonly operator: CompiledPolicy | null;
  readonly tunnel: CompiledPolicy | null;
}

/** Called for every examined rule, for traces. `note` says which condition failed or what the rule did. */
export type OnRule = (rule: RuleRef, matched: boolean, note: string) => void;

const NONE: readonly never[] = [];
const NO_BYTES = new Uint8Array(0);

const UNCHANGED: Pass = { kind: 'pass', changes: null, edits: NONE, matched: NONE, identity: null, heldBody: null };
const UNCHANGED_GUARDED: Pass = { ...UNCHANGED, edits: GUARD_ONLY };

type WebhookAction = Extract<CompiledAction, { kind: 'verify_webhook' }>;
type LimitAction = Extract<CompiledAction, { kind: 'rate_limit' }>;

/** Result of a rule: a step, the next rule, or the end of the list. */
type Outcome = PolicyStep | 'next' | 'list-over';

export class Run extends MatchedRules implements PolicyState, SessionHolder, FillRoom, HashRoom {
  waiting: PolicyEffect['kind'] = 'take-token';
  session: LoggedIn | null | undefined = undefined;
  fillLeft: number = POLICY_FILLED_MAX_CHARS;
  hashLeft: number = POLICY_HASHED_MAX_BYTES;
  readonly #lists: PolicyLists;
  readonly #request: PolicyRequest;
  readonly #onRule: OnRule | undefined;
  /** True for TCP and UDP connections: only rules about addresses apply. */
  readonly #isConnection: boolean;
  readonly #readings: RequestReadings;
  /** Current list of rules (the operator's or the tunnel's) and the position in it. */
  #list: CompiledPolicy | null;
  #isTunnels = false;
  #at = 0;
  /** Set if the request is for a sign-in path of the edge, which only rules about addresses can block. */
  #loginPath: LoginPath | null = null;
  #auth: AuthRun | null = null;
  #webhook: WebhookCheck | null = null;
  #identity: Identity | null = null;
  #draft: ChangeDraft | null = null;
  #edits: ResponseEdit[] | null = null;
  #operatorEdits: readonly ResponseEdit[] = NONE;
  #isPrivate = false;
  #heldBody: Uint8Array | null = null;

  constructor(lists: PolicyLists, request: PolicyRequest, onRule: OnRule | undefined, isConnection = false) {
    super((lists.tunnel ?? lists.operator)?.lastMatched ?? null);
    this.#lists = lists;
    this.#request = request;
    this.#onRule = onRule;
    this.#isConnection = isConnection;
    this.#readings = new RequestReadings(request.path);
    this.#list = lists.operator;
    if (this.#list === null) this.#enterTunnel();
  }

  go(nowMs: number): PolicyStep {
    while (this.#list !== null) {
      const rule = this.#list.rules[this.#at];
      if (rule === undefined || this.#isLoginNext(rule)) {
        if (this.#loginPath !== null) return this.#answerLoginPath(nowMs);
        this.#leaveList();
        continue;
      }
      const outcome = this.#look(rule, nowMs);
      if (outcome === 'next') this.#at += 1;
      else if (outcome === 'list-over') this.#leaveList();
      else return outcome;
    }
    return this.#pass();
  }

  resume(event: PolicyEvent, nowMs: number): PolicyStep {
    const rule = this.#list?.rules[this.#at];
    const isOfPath = this.waiting === 'finish-login' || (this.#loginPath !== null && this.waiting === 'open-cookie');
    if (event.kind === 'failed') {
      const { fault, retryAfterSecs } = event;
      return this.#answer(isOfPath ? undefined : rule, answerOfFault(fault, { retryAfterSecs }));
    }
    if (isOfPath) return this.#resumeLoginPath(event, nowMs);
    const outcome = rule === undefined ? null : this.#resumeRule(rule, event, nowMs);
    if (outcome === null || outcome === 'list-over') return this.#misfit(rule, event);
    if (outcome !== 'next') return outcome;
    this.#at += 1;
    return this.go(nowMs);
  }

  // ---- lists ----

  #leaveList(): void {
    if (this.#isTunnels) this.#list = null;
    else this.#enterTunnel();
  }

  #enterTunnel(): void {
    const { tunnel } = this.#lists;
    this.#operatorEdits = this.#edits ?? NONE;
    this.#edits = null;
    this.#isTunnels = true;
    this.#list = tunnel;
    this.#at = 0;
    if (tunnel !== null && tunnel.login !== null) this.#loginPath = matchLoginPath(this.#request.path);
  }

  /** Returns true at a rule that requires a sign-in, because the edge path itself serves the sign-in. */
  #isLoginNext({ action }: CompiledRule): boolean {
    return this.#loginPath !== null && action.kind === 'auth' && action.people !== null;
  }

  // ---- one rule ----

  #look(rule: CompiledRule, nowMs: number): Outcome {
    if (this.#loginPath !== null && (!rule.isByAddress || rule.action.kind === 'allow')) return 'next';
    if (this.#isConnection && !rule.isByAddress) return 'next';
    if (rule.match !== null && !rule.match.matches(this.#request, this.#readings)) {
      this.#onRule?.(rule.ref, false, rule.match.whyNot(this.#request, this.#readings));
      return 'next';
    }
    this.addMatched(rule.ref);
    return this.#act(rule, nowMs);
  }

  #act(rule: CompiledRule, nowMs: number): Outcome {
    const { action } = rule;
    switch (action.kind) {
      case 'allow':
        this.#onRule?.(rule.ref, true, 'allows the request');
        return 'list-over';
      case 'deny':
        return this.#answer(rule, faultAnswer('POLICY_DENIED', { status: action.status }));
      case 'allow_addresses':
        if (!action.networks.has(this.#request.address)) return this.#answer(rule, faultAnswer('POLICY_DENIED'));
        return this.#goOn(rule, 'the address is on the list');
      case 'auth':
        this.#auth = new AuthRun(action, this.#list?.login ?? null, this.#request, this);
        return this.#afterAuth(rule, this.#auth.next(nowMs));
      case 'verify_webhook':
        return this.#beginWebhook(rule, action, nowMs);
      case 'rate_limit':
        return this.#takeToken(rule, action);
      case 'max_body':
        return this.#boundBody(rule, action.bytes);
      case 'redirect': {
        const to = redirectTarget(action.to, this.#request, this.#user, this);
        return this.#answer(rule, to === null ? TOO_LONG : redirectAnswer(action.status, to));
      }
      case 'respond':
        return this.#answer(rule, action.answer);
      case 'rewrite':
        return this.#rewrite(rule, action.rule);
      case 'route':
        this.#change().service = action.service;
        return this.#goOn(rule, `to the service ${action.service}`);
      case 'request_headers': {
        const changes = action.fields.filledFor(this.#request, this.#user, this);
        if (changes === null) return this.#answer(rule, TOO_LONG);
        this.#change().change(changes);
        return this.#goOn(rule, 'changes request headers');
      }
      case 'response_headers': {
        const edit = action.fields.filledFor(this.#request, this.#user, this);
        if (edit === null) return this.#answer(rule, TOO_LONG);
        this.#addEdit(edit);
        return this.#goOn(rule, 'changes response headers');
      }
      case 'cors':
        if (isPreflight(this.#request)) {
          return this.#answer(rule, { kind: 'own', response: preflightResponse(action.rule, this.#request) });
        }
        this.#addEdit(corsEdit(action.rule, this.#request));
        return this.#goOn(rule, 'sets CORS headers');
      case 'error_page':
        this.#addEdit(action.edit);
        return this.#goOn(rule, 'sets an error page');
    }
  }

  /** Continues a rule with the result of its effect. Returns null if the event does not belong to the pending effect. */
  #resumeRule(rule: CompiledRule, event: PolicyEvent, nowMs: number): Outcome | null {
    switch (event.kind) {
      case 'token-taken': {
        if (this.waiting !== 'take-token') return null;
        if (event.retryAfterSecs === null) return this.#goOn(rule, 'within the limit');
        const retryAfterSecs = Math.max(1, Math.ceil(event.retryAfterSecs));
        return this.#answer(rule, faultAnswer('POLICY_RATE_LIMITED', { retryAfterSecs }));
      }
      case 'body-held':
        if (this.waiting !== 'hold-body') return null;
        this.#heldBody = event.body;
        return this.#checkWebhook(rule);
      case 'body-too-large':
        if (this.waiting !== 'hold-body') return null;
        return this.#answer(rule, faultAnswer('POLICY_BODY_TOO_LARGE'));
      default: {
        const step = isAnswerTo(event, this.waiting) ? (this.#auth?.resume(event, nowMs) ?? null) : null;
        return step === null ? null : this.#afterAuth(rule, step);
      }
    }
  }

  #afterAuth(rule: CompiledRule, step: AuthStep): Outcome {
    if (step.kind === 'effect') return this.#effect(step.effect);
    this.#auth = null;
    if (step.kind === 'out') return this.#answer(rule, step.answer);
    this.#identity = step.identity;
    // The service does not get a password checked by the edge. A JWT stays, because services read it.
    if (step.identity.method === 'basic') this.#change().removeVisitors('authorization');
    if (step.identity.method === 'login') this.#isPrivate = true;
    return this.#onRule === undefined ? 'next' : this.#goOn(rule, `${step.identity.user} by ${step.identity.method}`);
  }

  #beginWebhook(rule: CompiledRule, { rule: webhook, digests }: WebhookAction, nowMs: number): Outcome {
    const length = this.#bodyLength;
    if (length !== null && length > webhook.max_bytes) return this.#answer(rule, faultAnswer('POLICY_BODY_TOO_LARGE'));
    const check = webhookCheck(webhook, this.#request.headers, digests, nowMs, this);
    if (check === null) return this.#answer(rule, faultAnswer('POLICY_WEBHOOK_REFUSED'));
    if (check === 'good') {
      if (length === null) this.#change().boundBody(webhook.max_bytes);
      return this.#goOn(rule, 'the password or token is valid');
    }
    this.#webhook = check;
    if (length === 0 || this.#heldBody !== null) return this.#checkWebhook(rule);
    // The body is buffered up to the limit of this rule or of an earlier `max_body`, whichever is smaller.
    return this.#effect({ kind: 'hold-body', maxBytes: Math.min(webhook.max_bytes, this.#draft?.maxBody ?? Infinity) });
  }

  #checkWebhook(rule: CompiledRule): Outcome {
    const isGood = this.#webhook?.(this.#heldBody ?? NO_BYTES) === true;
    this.#webhook = null;
    return isGood
      ? this.#goOn(rule, 'the signature is valid')
      : this.#answer(rule, faultAnswer('POLICY_WEBHOOK_REFUSED'));
  }

  #takeToken(rule: CompiledRule, { rule: limit, digests }: LimitAction): Outcome {
    const { requests, per_secs: perSecs, burst, by } = limit;
    const key = limiterKeyOf(by, this.#request, this.#identity?.user ?? null, digests);
    return this.#effect({ kind: 'take-token', rule: rule.ref, key, requests, perSecs, burst });
  }

  #boundBody(rule: CompiledRule, bytes: number): Outcome {
    const length = this.#bodyLength;
    if (length === null) this.#change().boundBody(bytes);
    else if (length > bytes) return this.#answer(rule, faultAnswer('POLICY_BODY_TOO_LARGE'));
    return this.#goOn(rule, 'limits the body size');
  }

  #rewrite(rule: CompiledRule, prefixes: PathPrefixes): Outcome {
    const draft = this.#change();
    const path = rewrittenPath(draft.path ?? this.#request.path, prefixes);
    // Rejects the request, because some service could resolve the path above the added prefix.
    if (path === null) return this.#answer(rule, faultAnswer('POLICY_DENIED', { status: 400 }));
    draft.path = path;
    return this.#goOn(rule, `asks for ${path}`);
  }

  /** Length of the request body. Null while unknown. */
  get #bodyLength(): number | null {
    return this.#heldBody?.length ?? this.#request.bodyLength;
  }

  get #user(): string {
    return this.#identity?.user ?? '';
  }

  #change(): ChangeDraft {
    this.#draft ??= new ChangeDraft();
    return this.#draft;
  }

  #addEdit(edit: ResponseEdit): void {
    this.#edits ??= [];
    this.#edits.push(edit);
  }

  #goOn(rule: CompiledRule, note: string): 'next' {
    this.#onRule?.(rule.ref, true, note);
    return 'next';
  }

  // ---- the edge's own paths ----

  #answerLoginPath(nowMs: number): PolicyStep {
    const login = this.#list?.login ?? null;
    if (login === null || this.#loginPath === null) return this.#answer(undefined, faultAnswer('POLICY_DENIED'));
    const next = answerLoginPath(this.#loginPath, this.#request, login, this, nowMs);
    return isAnswer(next) ? this.#answer(undefined, next) : this.#effect(next);
  }

  #resumeLoginPath(event: PolicyEvent, nowMs: number): PolicyStep {
    if (!isAnswerTo(event, this.waiting)) return this.#misfit(undefined, event);
    const answer = resumeLoginPath(event, this);
    return answer === null ? this.#answerLoginPath(nowMs) : this.#answer(undefined, answer);
  }

  // ---- steps ----

  #effect(effect: PolicyEffect): PolicyStep {
    this.waiting = effect.kind;
    return { kind: 'effect', effect, state: this };
  }

  #answer(rule: CompiledRule | undefined, answer: PolicyAnswer): PolicyStep {
    if (rule !== undefined) {
      const status = answer.kind === 'fault' ? answer.status : answer.response.status;
      this.#onRule?.(rule.ref, true, `answers ${status}`);
    }
    const edits = this.#allEdits(false);
    return {
      kind: 'answer',
      answer,
      rule: rule?.ref ?? null,
      edits: setsEdgeCookie(answer) ? editsForLogin(edits) : edits,
      matched: this.matched,
      identity: this.#identity,
    };
  }

  /** Answers 500 to an event without a matching effect. That is a bug of the driver and must not let a visitor in. */
  #misfit(rule: CompiledRule | undefined, event: PolicyEvent): PolicyStep {
    const internal = `policy: waited for ${this.waiting}, got ${event.kind}`;
    return this.#answer(rule, answerOfFault(new Fault('INTERNAL', {}, { internal })));
  }

  #pass(): PolicyStep {
    const { operator, tunnel } = this.#lists;
    const hasLogin = tunnel !== null && tunnel.login !== null;
    const mayBeKnown = hasLogin || tunnel?.hasAuth === true || operator?.hasAuth === true;
    const changes = this.#changes(mayBeKnown);
    if (changes === null && !this.hasMatched) return hasLogin ? UNCHANGED_GUARDED : UNCHANGED;
    return {
      kind: 'pass',
      changes,
      edits: this.#allEdits(hasLogin),
      matched: this.matchedOfPass,
      identity: this.#identity,
      heldBody: this.#heldBody,
    };
  }

  #allEdits(isGuarded: boolean): readonly ResponseEdit[] {
    return orderedEdits(this.#edits ?? NONE, this.#operatorEdits, isGuarded, this.#isPrivate);
  }

  /** Returns null if the request passes unchanged, so that its head is not copied. */
  #changes(mayBeKnown: boolean): RequestChanges | null {
    const { operator, tunnel } = this.#lists;
    const { headers } = this.#request;
    const cookie = cookieForService(headers);
    const spellings = mayBeKnown ? guardedIn(headers, operator, tunnel, this.#identity) : NONE;
    if (this.#draft === null && cookie === null && spellings.length === 0 && this.#identity === null) return null;
    const last = (tunnel ?? operator)?.lastChanges ?? null;
    return this.#change().changes(cookie, spellings, this.#identity, last);
  }
}

/** The event that each effect of an evaluation expects as its result. */
const EVENT_OF = {
  'check-password': 'password-checked',
  'verify-jwt': 'jwt-verified',
  'open-cookie': 'cookie-opened',
  'begin-login': 'login-begun',
  'finish-login': 'login-finished',
  'hold-body': 'body-held',
  'take-token': 'token-taken',
} as const satisfies Record<PolicyEffect['kind'], PolicyEvent['kind']>;

/** Returns whether the event can be the result of the effect. `failed` is valid for every effect, `body-too-large` only for `hold-body`. */
const isAnswerTo = (event: PolicyEvent, effect: PolicyEffect['kind']): boolean =>
  event.kind === EVENT_OF[effect] ||
  event.kind === 'failed' ||
  (event.kind === 'body-too-large' && effect === 'hold-body');
