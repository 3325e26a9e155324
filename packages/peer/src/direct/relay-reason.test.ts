import { describe, expect, it } from 'vitest';
import { outcomeForReason, type RelayFacts, relayReasonOf } from './relay-reason.ts';

const facts = (changes: Partial<RelayFacts>): RelayFacts => ({ unable: null, ports: [], verdict: null, ...changes });

describe('the reason for staying on the relay', () => {
  it.each([
    ['punching', {}],
    ['punching', { ports: ['consistent', 'consistent'] }],
    ['punching', { ports: ['consistent', 'random'] }],
    ['no-answer', { ports: ['consistent', 'consistent'], verdict: 'no-answer' }],
    ['random-ports', { ports: ['random', 'consistent'], verdict: 'no-answer' }],
    ['random-ports', { ports: ['random', 'random'] }],
    ['udp-blocked', { ports: ['random', 'none'] }],
    ['udp-blocked', { ports: ['none', 'consistent'], verdict: 'no-answer' }],
    ['went-silent', { ports: ['none', 'none'], verdict: 'went-silent' }],
    ['off', { unable: 'off', ports: ['none', 'none'], verdict: 'went-silent' }],
    ['no-transport', { unable: 'no-transport' }],
  ] as const)('%s: %o', (reason, changes) => {
    expect(relayReasonOf(facts(changes))).toBe(reason);
  });

  it.each([
    ['no-answer', 'punching'],
    ['no-answer', 'went-silent'],
    ['udp-blocked', 'udp-blocked'],
    ['random-ports', 'random-ports'],
  ] as const)('after a failed round counts as %s when it was %s', (outcome, reason) => {
    expect(outcomeForReason(reason)).toBe(outcome);
  });
});
