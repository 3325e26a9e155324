// Entry points of rule evaluation: begins a request, and resumes it after an effect.

import type { PolicyEvent, PolicyRequest, PolicyState, PolicyStep } from '../policy-step.ts';
import { type OnRule, type PolicyLists, Run } from './policy-run.ts';

/** Starts the evaluation of a request. Returns `pass` or `answer` immediately, unless an effect is needed first. */
export const begin = (lists: PolicyLists, request: PolicyRequest, nowMs: number, onRule?: OnRule): PolicyStep =>
  new Run(lists, request, onRule).go(nowMs);

/** `state` is from the step with the effect, and can be used once. */
export const resume = (state: PolicyState, event: PolicyEvent, nowMs: number): PolicyStep => {
  if (!(state instanceof Run)) throw new TypeError('not a state of these rules');
  return state.resume(event, nowMs);
};

/**
 * Decides a TCP connection or a new UDP flow, using only the rules about addresses. Continue with `resume`. Any answer means a TCP reset or
 * a dropped datagram.
 */
export const decideConnection = (lists: PolicyLists, address: string, nowMs: number, onRule?: OnRule): PolicyStep =>
  new Run(lists, connectionFrom(address), onRule, true).go(nowMs);

const connectionFrom = (address: string): PolicyRequest => ({
  method: '',
  path: '',
  headers: [],
  host: '',
  authority: '',
  scheme: 'http',
  address,
  isUpgrade: false,
  bodyLength: 0,
  requestId: '',
});
