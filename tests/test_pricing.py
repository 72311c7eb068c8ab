"""Prices against sums by hand, loops hour by hour, and every group counted up."""

from __future__ import annotations

import itertools
import math

import pytest

from lantern_lib import H100, LANTERN_70B, Replica, capacity, metrics, pricing
from lantern_lib.pricing import Fleet, MixCapacity, Option, Provisioned, Requirements, TokenPrices

PRICES = TokenPrices(3e-6, 12e-6)
EU, WORLD = frozenset({"eu"}), frozenset({"eu", "us"})


# ---- a price for a mix --------------------------------------------------------------------------


@pytest.mark.parametrize(("percent", "dollars"), [(0, 3.0), (10, 3.9), (20, 4.8), (30, 5.7), (50, 7.5), (100, 12.0)])
def test_a_blended_price_is_the_bill_of_a_hundred_tokens(percent: int, dollars: float) -> None:
    bill = sum(12.0 if token < percent else 3.0 for token in range(100))
    assert bill == pytest.approx(100 * dollars)
    assert pricing.blended_price(PRICES, percent / 100) == pytest.approx(dollars * 1e-6)


def test_cached_input_is_counted_token_by_token() -> None:
    prices = TokenPrices(3.0, 12.0, cached_read_price=0.3, cached_write_price=3.75)
    # Of ten tokens two are output; of the eight of input four are read and two written.
    bill = 2 * 12 + 4 * 0.3 + 2 * 3.75 + 2 * 3
    assert pricing.blended_price(prices, 0.2, read_fraction=0.5, write_fraction=0.25) == pytest.approx(bill / 10)
    free = TokenPrices(3.0, 12.0, cached_read_price=0.0)
    assert pricing.blended_price(free, 0, read_fraction=1) == 0
    assert pricing.blended_price(PRICES, 0.2, read_fraction=1) == pricing.blended_price(PRICES, 0.2)


@pytest.mark.parametrize(
    ("percent", "billions", "use"), [(10, 3.077, 76.9), (20, 2.5, 62.5), (30, 2.105, 52.6), (50, 1.6, 40.0)]
)
def test_the_break_even_table(percent: int, billions: float, use: float) -> None:
    price = pricing.blended_price(PRICES, percent / 100)
    assert pricing.break_even_tokens(12_000, price) / 1e9 == pytest.approx(billions, abs=5e-4)
    assert pricing.break_even_utilization(12_000, price, 4e9) * 100 == pytest.approx(use, abs=0.05)


def test_both_bills_are_equal_at_the_break_even_and_only_there() -> None:
    price, own = 4.5e-6, 0.5e-6
    tokens = pricing.break_even_tokens(12_000, price, own_token_cost=own)
    assert 12_000 + own * tokens == pytest.approx(price * tokens)
    assert 12_000 + own * 1.01 * tokens < price * 1.01 * tokens
    with pytest.raises(ValueError, match="^own_token_cost must be below"):
        pricing.break_even_tokens(12_000, price, own_token_cost=price)


def test_a_replica_by_the_hour_has_a_break_even_too() -> None:
    assert pricing.break_even_utilization(12, 2e-6, 38.3e6) == pytest.approx(6e6 / 38.3e6)


# ---- capacity and its mix -----------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1, 2, 4, 8])
@pytest.mark.parametrize("percent", [0, 10, 35, 50, 100])
def test_capacity_is_what_the_work_of_a_hundred_tokens_leaves_room_for(weight: int, percent: int) -> None:
    capacity = MixCapacity(1000.0, 1.0, weight)
    work = sum(weight if token < percent else 1 for token in range(100))
    assert capacity.tokens(percent / 100) == pytest.approx(1000 / work * 100)


def test_a_measured_capacity_serves_what_was_measured() -> None:
    for weight in (1, 2.5, 8):
        assert MixCapacity.measured(4e9, 0.1, decode_weight=weight).tokens(0.1) == pytest.approx(4e9)
    assert MixCapacity.measured(4e9, 0.1, decode_weight=4).tokens(0.5) == pytest.approx(2.08e9)


@pytest.mark.parametrize(("weight", "direction"), [(1, -1), (2, -1), (4, 0), (8, 1)])
def test_the_mix_drops_out_when_the_weight_is_the_price_ratio(weight: float, direction: int) -> None:
    unit = Provisioned(12_000, MixCapacity.measured(4e9, 0.1, decode_weight=weight))
    low, high = unit.utilization_to_pay(PRICES, 0.1), unit.utilization_to_pay(PRICES, 0.5)
    assert low == pytest.approx(12_000 / 3.9e-6 / 4e9)
    assert (high > low * 1.001) - (high < low * 0.999) == direction


# ---- demand and spillover -----------------------------------------------------------------------


def test_the_day_has_the_shape_that_its_docstring_says() -> None:
    day = pricing.daily_demand(10)
    assert sum(day) == 240
    assert [pricing.demand_percentile(day, q / 100) for q in (0, 10, 25, 33, 50, 75, 90, 100)] == [
        2, 2, 3, 5, 9, 16, 19, 20,
    ]  # fmt: skip


@pytest.mark.parametrize("q", [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("demand", [[5.0], [3.0, 1.0, 2.0], list(range(1, 11)), list(pricing.daily_demand(7))])
def test_a_percentile_is_the_smallest_hour_that_covers_the_share(q: float, demand: list[float]) -> None:
    covering = [v for v in demand if sum(d <= v for d in demand) >= q * len(demand) - 1e-9]
    assert pricing.demand_percentile(demand, q) == min(covering)


def test_it_brackets_the_interpolated_percentile_of_the_metrics() -> None:
    day = pricing.daily_demand(10)
    assert pricing.demand_percentile(day, 0.5) <= metrics.percentile(day, 0.5) <= 10


@pytest.mark.parametrize("floor", [0, 2, 4.5, 9, 20, 25])
@pytest.mark.parametrize("refusal", [0.0, 0.05, 1.0])
def test_a_plan_is_a_loop_over_every_hour_of_the_month(floor: float, refusal: float) -> None:
    day = pricing.daily_demand(10)
    plan = pricing.plan_with_spillover(
        day, floor, floor_token_hour_dollars=3, spill_price=4.5, pool_refusal=refusal, hours_per_month=720
    )
    served = spilled = refused = floor_bill = spill_bill = 0.0
    for hour in range(720):
        asked = day[hour % 24]
        here = asked if asked < floor else floor
        served += here
        floor_bill += 3 * floor
        refused += (asked - here) * refusal
        spilled += (asked - here) * (1 - refusal)
        spill_bill += 4.5 * (asked - here) * (1 - refusal)
    assert plan.floor_tokens == pytest.approx(served)
    assert plan.spilled_tokens == pytest.approx(spilled)
    assert plan.refused_tokens == pytest.approx(refused)
    assert plan.floor_dollars == pytest.approx(floor_bill)
    assert plan.total_dollars == pytest.approx(floor_bill + spill_bill)
    assert plan.floor_tokens + plan.spilled_tokens + plan.refused_tokens == pytest.approx(plan.total_tokens)
    assert plan.floor_utilization == pytest.approx(served / (720 * floor) if floor else 0)
    assert plan.share_of_hours_above == sum(d > floor for d in day) / 24


def test_by_hand_the_median_floor_of_the_day() -> None:
    plan = pricing.plan_with_spillover(
        pricing.daily_demand(10), 9, floor_token_hour_dollars=3, spill_price=4.5, hours_per_month=24
    )
    assert (plan.floor_tokens, plan.spilled_tokens) == (162, 78)
    assert (plan.floor_dollars, plan.spill_dollars) == (648, 351)
    assert (plan.floor_share, plan.floor_utilization, plan.share_of_hours_above) == (0.675, 0.75, 0.5)


@pytest.mark.parametrize("to_pay", [0.3, 0.4, 0.55, 2 / 3, 0.77, 0.95])
def test_the_cheapest_floor_stands_where_the_last_unit_just_pays(to_pay: float) -> None:
    """All floors tried on a fine grid; none beats the one at the percentile 1 − u*."""
    day = pricing.daily_demand(10)

    def bill(floor: float) -> float:
        return pricing.plan_with_spillover(
            day, floor, floor_token_hour_dollars=to_pay, spill_price=1.0, hours_per_month=24
        ).total_dollars

    rule = bill(pricing.demand_percentile(day, 1 - to_pay))
    assert rule == pytest.approx(min(bill(step / 20) for step in range(0, 421)))


# ---- machines of one's own ----------------------------------------------------------------------


def test_the_fleet_of_the_warm_up_with_and_without_people() -> None:
    assert Fleet(8, 3, 25_000).monthly_dollars(0) == 8 * 3 * 730 + 25_000 == 42_520
    assert Fleet(8, 3, 0).monthly_dollars(1e9) == 17_520
    assert Fleet(8, 3, 25_000, hours_per_month=720).monthly_dollars(1e9) == 42_280
    printed = {1: 42.52, 5: 8.50, 10: 4.25, 20: 2.13}
    for billions, dollars in printed.items():
        assert Fleet(8, 3, 25_000).token_dollars(billions * 1e9) * 1e6 == pytest.approx(dollars, abs=0.005)


def test_the_crossings_of_the_errata() -> None:
    fleet = Fleet(8, 3, 25_000)
    assert fleet.crossover_tokens(3.9e-6) / 1e9 == pytest.approx(10.9, abs=0.05)
    assert fleet.crossover_tokens(7.5e-6) / 1e9 == pytest.approx(5.7, abs=0.05)


def test_a_fleet_grows_when_a_group_is_full_and_not_before() -> None:
    fleet = Fleet(8, 3, 25_000, group_capacity_tokens=10e9)
    assert [fleet.groups(b * 1e9) for b in (0, 1, 10, 10.001, 20, 35)] == [1, 1, 1, 2, 2, 4]
    assert fleet.monthly_dollars(35e9) == 4 * 17_520 + 25_000


@pytest.mark.parametrize("capacity", [2e9, 5e9, 8e9, 36e9])
@pytest.mark.parametrize("price", [3.9e-6, 4.5e-6, 7.5e-6, 1e-6])
def test_the_crossing_is_the_first_volume_that_pays(capacity: float, price: float) -> None:
    """Volumes tried one by one, ten million tokens apart."""
    fleet = Fleet(8, 3, 25_000, group_capacity_tokens=capacity)
    tried = (step * 1e7 for step in range(1, 20_001))
    first = next((v for v in tried if fleet.monthly_dollars(v) <= price * v), math.inf)
    crossing = fleet.crossover_tokens(price)
    assert crossing == first == math.inf or first - 1e7 < crossing <= first


# ---- gates --------------------------------------------------------------------------------------

POOL = Option("pool", "per-token", 100, WORLD, "internal")
UNIT = Option("unit", "provisioned", 100, EU)
FLOOR = Option("floor", "spillover", 90, EU)
OWN = Option("own", "self-hosted", 9000, EU, "restricted", third_party=False, pinned_weights=True)
OFFERS = (OWN, FLOOR, UNIT, POOL)


@pytest.mark.parametrize(
    ("needs", "left"),
    [
        (Requirements(), {"pool", "unit", "floor", "own"}),
        (Requirements(allowed_regions=EU), {"unit", "floor", "own"}),
        (Requirements("confidential"), {"unit", "floor", "own"}),
        (Requirements("restricted"), {"own"}),
        (Requirements(third_party_allowed=False), {"own"}),
        (Requirements(must_reproduce=True), {"own"}),
        (Requirements("restricted", frozenset({"ch"})), set()),
    ],
)
def test_each_gate_lets_through_what_it_should(needs: Requirements, left: set[str]) -> None:
    choice = pricing.cheapest_option(OFFERS, needs)
    assert {o.name for o in OFFERS} - set(choice.refused) == left
    names = sorted((o.monthly_dollars, o.name) for o in OFFERS if o.name in left)
    assert (choice.option.name if choice.option else None) == (names[0][1] if names else None)


def test_no_price_opens_a_gate() -> None:
    for dollars in (0, 1e-9, 5):
        gift = Option("gift", "per-token", dollars, WORLD, "public")
        choice = pricing.cheapest_option((gift, OWN), Requirements("restricted", EU, third_party_allowed=False))
        assert choice.option == OWN
        assert [reason.split(":")[0] for reason in choice.refused["gift"]] == ["region", "class", "processor"]


def test_a_tie_goes_to_paying_per_token_in_any_order() -> None:
    same = [Option(kind, kind, 50, EU) for kind in pricing.KINDS]
    for order in itertools.permutations(same):
        choice = pricing.cheapest_option(order)
        assert choice.option is not None
        assert choice.option.kind == "per-token"


# ---- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TokenPrices(0, 1), "input_price must be"),
        (lambda: TokenPrices(1, math.nan), "output_price must be"),
        (lambda: TokenPrices(1, 1, cached_read_price=-1), "cached_read_price must be"),
        (lambda: pricing.blended_price(PRICES, 10), "output_fraction must be a fraction in"),
        (lambda: pricing.blended_price(PRICES, -0.1), "output_fraction must be a fraction in"),
        (lambda: pricing.blended_price(PRICES, 0.5, read_fraction=0.6, write_fraction=0.6), "write_fraction must be"),
        (lambda: MixCapacity(0), "work must be"),
        (lambda: MixCapacity(1, 1, -2), "decode_weight must be"),
        (lambda: Provisioned(0, MixCapacity(1)), "monthly_dollars must be"),
        (lambda: pricing.break_even_utilization(12_000, 4e-6, 0), "capacity_tokens must be"),
        (lambda: pricing.demand_percentile([], 0.5), "demand must be"),
        (lambda: pricing.demand_percentile([1.0], 50), "q must be a fraction in"),
        (lambda: pricing.daily_demand(0), "mean_tokens_per_hour must be"),
        (lambda: Fleet(8.0, 3, 0), "group_gpus must be"),  # type: ignore[arg-type]
        (lambda: Fleet(8, 3, -1), "people_dollars must be"),
        (lambda: Fleet(8, 3, 0, group_capacity_tokens=0), "group_capacity_tokens must be"),
        (lambda: Fleet(8, 3, 0).token_dollars(0), "monthly_tokens must be"),
        (lambda: Option("x", "rented", 1, EU), "kind must be one of"),
        (lambda: Option("x", "per-token", 1, frozenset()), "regions must be"),
        (lambda: Requirements("secret"), "data_class must be one of"),
        (lambda: pricing.cheapest_option([]), "options must be"),
    ],
)
def test_an_error_names_the_field(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(("demand", "refusal"), [([0.0, 0.0], 0), ([], 0), ([1.0], 1.5), ([-1.0], 0)])
def test_a_plan_needs_a_demand_and_a_share(demand: list[float], refusal: float) -> None:
    with pytest.raises(ValueError, match="^(demand|pool_refusal) must be"):
        pricing.plan_with_spillover(demand, 1, floor_token_hour_dollars=1, spill_price=1, pool_refusal=refusal)


def test_spares_and_people_are_paid_at_every_volume() -> None:
    """By hand: 8 GPUs × 3 dollars × 730 hours a group."""
    fleet = Fleet(8, 3, 25_000, group_capacity_tokens=10e9, spare_groups=2)
    assert fleet.standing_dollars == 25_000 + 2 * 17_520
    assert fleet.monthly_dollars(1e9) == 3 * 17_520 + 25_000
    assert fleet.monthly_dollars(11e9) == 4 * 17_520 + 25_000
    price = 5e-6  # a full group gains 50,000 − 17,520 dollars, so that it takes two to carry the 60,040
    crossing = fleet.crossover_tokens(price)
    assert fleet.monthly_dollars(crossing) == pytest.approx(price * crossing)
    volumes = [n * 1e7 for n in range(1, 4000)]
    first = next(v for v in volumes if fleet.monthly_dollars(v) <= price * v)
    assert crossing <= first <= crossing + 1e7


@pytest.mark.parametrize("groups", [1, 2, 7])
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(("spares", "people"), [(0, 0.0), (1, 25_000.0)])
def test_at_the_break_even_a_token_costs_what_the_api_takes(
    groups: int, share: float, spares: int, people: float
) -> None:
    demand = capacity.fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), capacity.Traffic(20, 2000, 400))
    fleet = pricing.fleet_for(demand, 3.0, floor_share=share, people_dollars=people, spare_groups=spares)
    paid = (groups + spares) * 12 * 730 + people
    served = groups * share * demand.requests_per_second * 2400 * 3600 * 730
    assert fleet.utilization_to_pay(2e-6, groups) == pytest.approx(paid / (2e-6 * served))
    assert fleet.token_dollars_at(0.65, groups) == pytest.approx(paid / (0.65 * served))
    used = fleet.utilization_to_pay(2e-6, groups)
    if used <= 1:
        assert fleet.token_dollars_at(used, groups) == pytest.approx(2e-6)


def test_a_replica_s_price_is_the_one_of_the_sizing_page() -> None:
    """C3's function, for the same GPUs at the same rate, gives the same dollars."""
    demand = capacity.fleet_demand(LANTERN_70B, Replica(H100, tp_size=4), capacity.Traffic(20, 2000, 400))
    rate = demand.requests_per_second * 2400
    for used in (0.1, 0.65, 1.0):
        own = pricing.fleet_for(demand, 3.0).token_dollars_at(used) * 1e6
        assert own == pytest.approx(capacity.dollars_per_million(3.0, 4, rate, utilization=used))


def test_a_utilisation_needs_a_capacity() -> None:
    with pytest.raises(ValueError, match="group_capacity_tokens must be finite for a utilisation, got inf"):
        Fleet(8, 3, 0).utilization_to_pay(2e-6)
    with pytest.raises(ValueError, match=r"utilization must be a fraction in \(0, 1\], got 1.5"):
        Fleet(8, 3, 0, group_capacity_tokens=1e9).token_dollars_at(1.5)
    with pytest.raises(ValueError, match="groups must be a whole number of 1 or more, got 0"):
        Fleet(8, 3, 0, group_capacity_tokens=1e9).utilization_to_pay(2e-6, 0)
    with pytest.raises(ValueError, match="spare_groups must be a whole number of 0 or more"):
        Fleet(8, 3, 0, spare_groups=-1)
