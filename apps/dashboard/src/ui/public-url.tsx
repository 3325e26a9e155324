// Where visitors come to: the address itself, opened by a press where a browser can, with a copy beside it.
import { CopyButton } from './button.tsx';
import { classNames } from './class-names.ts';
import { Icon } from './icon.tsx';

export interface PublicUrlProps {
  /** `http://web.example.com`, or `tcp://example.com:20001`, which no browser opens. */
  readonly url: string;
  readonly className?: string;
}

export const PublicUrl = ({ url, className }: PublicUrlProps) => (
  <span className={classNames('flex min-w-0 items-center gap-1', className)}>
    {/^https?:/.test(url) ? (
      <a
        href={url}
        target="_blank"
        rel="noreferrer"
        title={`Open ${url}`}
        className="inline-flex min-w-0 items-center gap-1.5 rounded-sm text-accent underline-offset-2 hover:underline"
      >
        <span className="min-w-0 break-all">{url}</span>
        <Icon name="outside" className="size-3.5" />
      </a>
    ) : (
      <span className="min-w-0 break-all">{url}</span>
    )}
    <CopyButton text={url} label={`Copy ${url}`} />
  </span>
);
