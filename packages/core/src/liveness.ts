// Whether a peer still lives: pings at a fixed pace, dead when nothing at all was heard for longer than a ping and its answer need.

interface LivenessRules {
  readonly pingEveryMs: number;
  readonly deadAfterMs: number;
}

interface LivenessFacts {
  readonly lastHeardAt: number;
  readonly lastPingAt: number;
}

type LivenessVerdict = 'alive' | 'ping-due' | 'dead';

export const judgeLiveness = (facts: LivenessFacts, now: number, rules: LivenessRules): LivenessVerdict => {
  if (now - facts.lastHeardAt >= rules.deadAfterMs) return 'dead';
  return now - facts.lastPingAt >= rules.pingEveryMs ? 'ping-due' : 'alive';
};
