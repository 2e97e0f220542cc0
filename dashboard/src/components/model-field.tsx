/** The name of a model: any text, with those that the gateway knows to choose from. */
import { useQuery } from '@tanstack/react-query';
import { useId, type ReactElement } from 'react';
import { get } from '../api/client.ts';
import { TextField, type TextFieldProps } from './field.tsx';

interface ListedModels {
  readonly models: readonly { readonly id: string }[];
}

/** What can be called. */
export function useModelNames() {
  return useQuery({
    queryKey: ['models', 'names'],
    queryFn: async ({ signal }) => {
      const { models } = await get<ListedModels>('/api/models', { signal });
      return models.map(({ id }) => id);
    },
    staleTime: 30_000,
  });
}

type ModelFieldProps = Pick<
  TextFieldProps,
  'label' | 'value' | 'onChange' | 'placeholder' | 'error'
>;

export function ModelField(props: ModelFieldProps): ReactElement {
  const id = useId();
  const names = useModelNames().data ?? [];
  return (
    <div>
      <TextField {...props} list={id} />
      <datalist id={id}>
        {names.map((name) => (
          <option key={name} value={name} aria-label={name} />
        ))}
      </datalist>
    </div>
  );
}
