// Diagram of a visitor's path through your DNS, our edge and your service, with the state of each hop.
import type { OwnDomainView } from '@tunnel/contract';
import { Fragment } from 'react';
import type { Tone } from '../../ui/badge.tsx';
import { classNames } from '../../ui/class-names.ts';
import { useNow } from '../../ui/hooks.ts';
import { Icon } from '../../ui/icon.tsx';
import { domainHops, type Hop } from './own-domain-texts.ts';

export const DomainPath = ({ domain }: { readonly domain: OwnDomainView }) => {
  // The texts are compared as JSON, so that the component renders only if a text changes, for example when a certificate expires.
  const text = useNow((now) => JSON.stringify(domainHops(domain, now)));
  const hops = JSON.parse(text) as readonly Hop[];
  return (
    <ol aria-label="Path of a visitor's request" className="flex flex-col sm:flex-row sm:items-center">
      {hops.map((hop, index) => (
        <Fragment key={hop.key}>
          {index > 0 && <Arrow isOpen={hops.slice(0, index).every(({ tone }) => tone === 'good')} />}
          <HopBox hop={hop} />
        </Fragment>
      ))}
    </ol>
  );
};

/** Classes for each tone: the frame of the icon, and the color of icon and text. */
const LOOKS: Readonly<Record<Tone, readonly [string, string]>> = {
  neutral: ['border-line bg-sunken', 'text-muted'],
  accent: ['border-accent/30 bg-accent-soft', 'text-accent'],
  good: ['border-good/30 bg-good-soft', 'text-good'],
  warn: ['border-warn/30 bg-warn-soft', 'text-warn'],
  bad: ['border-bad/30 bg-bad-soft', 'text-bad'],
};

const HopBox = ({ hop: { key, title, tone, short } }: { readonly hop: Hop }) => (
  <li className="flex min-w-0 items-center gap-3 sm:flex-1 sm:flex-col sm:text-center">
    <span className={classNames('grid size-10 shrink-0 place-items-center rounded-lg border', ...LOOKS[tone])}>
      <Sign of={key} />
    </span>
    <span className="min-w-0">
      <span className="block font-medium">{title}</span>
      <span className={classNames('block text-sm', LOOKS[tone][1])}>{short}</span>
    </span>
  </li>
);

const Sign = ({ of: which }: { readonly of: Hop['key'] }) => {
  if (which !== 'service') return <Icon name={which === 'dns' ? 'domains' : 'tunnels'} className="size-5" />;
  return (
    <svg
      viewBox="0 0 16 16"
      aria-hidden="true"
      className="size-5"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.4"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d="M2 3.5h12v7.5H2zM5.5 13.5h5M8 11v2.5" />
    </svg>
  );
};

/** Arrow between two hops. A solid line means that visitors get past all earlier hops, a dashed line that they do not. */
const Arrow = ({ isOpen }: { readonly isOpen: boolean }) => (
  <li aria-hidden="true" className={classNames('shrink-0', isOpen ? 'text-good' : 'text-edge')}>
    <svg viewBox="0 0 72 16" className="hidden h-4 w-18 sm:block" fill="none" stroke="currentColor" strokeWidth="1.5">
      <path d="M2 8h66" strokeDasharray={isOpen ? undefined : '4 4'} />
      <path d="m63 3.5 5 4.5-5 4.5" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
    <svg
      viewBox="0 0 16 28"
      className="my-1 ml-3 h-7 w-4 sm:hidden"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
    >
      <path d="M8 2v23" strokeDasharray={isOpen ? undefined : '4 4'} />
      <path d="m3.5 20.5 4.5 5 4.5-5" strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  </li>
);
