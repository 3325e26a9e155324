// Effect of the rules on a captured request: the rules that answered or changed the request, and the visitor's account. The code is
// loaded with the first request that has a policy.
import { useQuery } from '@tanstack/react-query';
import type { CapturedPolicy, CapturedRequest, TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { answeredText, appliedRules, isTurnedAway } from './policy-text.ts';
import { policyQuery } from './queries.ts';

export interface PolicyTraceProps {
  readonly entry: TunnelLogEntry;
  readonly request: CapturedRequest;
  readonly policy: CapturedPolicy;
}

export const PolicyTrace = ({ entry, request, policy }: PolicyTraceProps) => {
  const rules = useQuery(policyQuery(useApi(), entry)).data?.rules;
  const answered = answeredText(request);
  const applied = appliedRules(policy, rules ?? []);
  return (
    <section aria-label="Effect of the rules" className="mt-4 space-y-2">
      {answered !== null && <Notice tone={isTurnedAway(request) ? 'warn' : 'neutral'}>{answered}</Notice>}
      {policy.user !== null && (
        <p>
          <span className="text-muted">Visitor</span> <span className="wrap-anywhere font-medium">{policy.user}</span>
        </p>
      )}
      {applied.length === 0 && answered === null && <p className="text-muted text-sm">No rule matched.</p>}
      {applied.length > 0 && (
        <>
          <h4 className="font-semibold">Matching rules</h4>
          <ol className="text-sm">
            {applied.map(({ index, text }) => (
              <li key={index} className="flex gap-3 py-0.5">
                <span className="w-6 shrink-0 text-right text-muted">{index}</span>
                {/* Only rule numbers are shown while the descriptions load, or if the region does not respond. */}
                <span className="wrap-anywhere min-w-0">{rules === undefined ? `Rule ${index}` : text}</span>
              </li>
            ))}
          </ol>
        </>
      )}
    </section>
  );
};
