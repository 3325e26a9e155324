// Card with a domain's certificate: its state, issuer, validity, next renewal, and the latest error.
import type { OwnDomainView } from '@tunnel/contract';
import type { ReactNode } from 'react';
import { Badge, Notice } from '../../ui/badge.tsx';
import { Card } from '../../ui/card.tsx';
import { useNow } from '../../ui/hooks.ts';
import { sentence } from '../../ui/problem-text.ts';
import { Day } from '../../ui/values.tsx';
import { certificateOf, certificateText } from './own-domain-texts.ts';

export const CertificateCard = ({ domain }: { readonly domain: OwnDomainView }) => {
  const { certificate } = domain;
  const text = useNow((now) => certificateText(domain, now));
  const short = useNow((now) => certificateOf(domain, now).short);
  const tone = useNow((now) => certificateOf(domain, now).tone);
  const { issuer, not_before: from, not_after: end, renew_at: renewal, last_error: error } = certificate ?? NONE;
  return (
    <Card title="Certificate" description={text} actions={<Badge tone={tone}>{short}</Badge>} padded={false}>
      {(error !== null || end !== null) && (
        <div className="space-y-4 px-4 pb-4 sm:px-5 sm:pb-5">
          {error !== null && (
            <Notice tone={tone === 'bad' ? 'bad' : 'warn'}>
              <p className="wrap-anywhere">{sentence(error)}</p>
            </Notice>
          )}
          {end !== null && (
            <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-[auto_minmax(0,1fr)]">
              {issuer !== null && <Detail name="Issuer">{issuer}</Detail>}
              {from !== null && (
                <Detail name="Valid from">
                  <Day at={from} />
                </Detail>
              )}
              <Detail name="Valid until">
                <Day at={end} />
              </Detail>
              {renewal !== null && (
                <Detail name="Next renewal">
                  <Day at={renewal} />
                </Detail>
              )}
            </dl>
          )}
        </div>
      )}
    </Card>
  );
};

const NONE = { issuer: null, not_before: null, not_after: null, renew_at: null, last_error: null };

const Detail = ({ name, children }: { readonly name: string; readonly children: ReactNode }) => (
  <>
    <dt className="text-muted">{name}</dt>
    <dd className="wrap-anywhere min-w-0 max-sm:-mt-2.5">{children}</dd>
  </>
);
