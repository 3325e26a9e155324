// What is in sight was answered before; the region does not answer any more.
import type { UseQueryResult } from '@tanstack/react-query';
import { Notice } from '../../ui/notice.tsx';
import { problemText } from '../../ui/problem-text.ts';

export const StaleNotice = ({ query }: { readonly query: Pick<UseQueryResult, 'isError' | 'error' | 'data'> }) =>
  query.isError && query.data !== undefined ? (
    <div className="mb-4">
      <Notice tone="warn" live>
        {problemText(query.error)} What you see is from before.
      </Notice>
    </div>
  ) : null;
