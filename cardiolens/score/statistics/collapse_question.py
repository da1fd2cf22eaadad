"""Whether answers spread over fewer categories than the truth, as a question over models (protocol 17.13)."""

from collections.abc import Collection, Iterator, Mapping

from cardiolens.score.statistics.headlines import Headlines, model_means
from cardiolens.score.statistics.pooled_effects import Effect
from cardiolens.score.statistics.pooled_questions import COLLAPSE, COLLAPSE_KEYS, PooledQuestion
from cardiolens.score.statistics.read_in_both import ReadInBoth
from cardiolens.score.statistics.statistic import Key, Statistic

ANSWERS, TRUTH = "answers", "truth"


def collapse_questions(headlines: Headlines, simulated: Collection[str]) -> list[PooledQuestion]:
    """The question over all models that have headlines, of the arms behind them; none without a model."""
    models = {
        model: protocols
        for model, protocols in headlines.items()
        if not {arm for arms in protocols.values() for arm in arms} <= set(simulated)
    }
    settings = max((len(protocols) for protocols in models.values()), default=0)
    weights = {model: {(model, TRUTH): 1.0} for model in sorted(models)}
    return [PooledQuestion(COLLAPSE, ANSWERS, TRUTH, settings, weights)] if models else []


def collapse_effects(
    question: PooledQuestion, statistics: Mapping[str, Mapping[Key, Statistic]], headlines: Headlines
) -> Iterator[tuple[str, Key, Effect]]:
    """The mean entropy deficit of each model over the arms of its headline, by tier."""
    for model in question.weights:
        means = model_means(statistics, headlines[model])
        for key in COLLAPSE_KEYS:
            if key in means:
                mean = means[key]
                value = float(mean.values[0])
                read = ReadInBoth(value, mean.basis.n_items, 0, 0)
                yield model, key, Effect(mean.values, mean.basis, value, value, 0, 0, read)
