/** The name of a model: any text, with those that the gateway knows to choose from. */
import { useQuery } from '@tanstack/react-query';
import { useId, type ReactElement } from 'react';
import { get } from '../api/client.ts';
import { TextField, type TextFieldProps } from './field.tsx';

export interface ListedModel {
  readonly id: string;
  readonly max_input_tokens: number | null;
  readonly max_tokens: number | null;
}

/** What can be called. */
export function useListedModels() {
  return useQuery({
    queryKey: ['models', 'listed'],
    queryFn: async ({ signal }) =>
      (await get<{ readonly models: readonly ListedModel[] }>('/api/models', { signal })).models,
    staleTime: 30_000,
  });
}

type ModelFieldProps = Pick<
  TextFieldProps,
  'label' | 'value' | 'onChange' | 'placeholder' | 'error'
>;

export function ModelField(props: ModelFieldProps): ReactElement {
  const id = useId();
  const models = useListedModels().data ?? [];
  return (
    <div>
      <TextField {...props} list={id} />
      <datalist id={id}>
        {models.map(({ id: name }) => (
          <option key={name} value={name} aria-label={name} />
        ))}
      </datalist>
    </div>
  );
}
